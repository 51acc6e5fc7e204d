/** A password made of random numbers, in the form that the server makes up: `5f0c-91be-77a4-0d2e-c6a1`. */
export function madeUp(random: Uint16Array): string {
  return [...random].map((part) => part.toString(16).padStart(4, "0")).join("-");
}
