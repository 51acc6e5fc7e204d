export const datasets = {};
