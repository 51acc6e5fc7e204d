export const environments = {};
