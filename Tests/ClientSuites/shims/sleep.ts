// deno.land/x/sleep: seconds.
export const sleep = (seconds: number) => new Promise((done) => setTimeout(done, seconds * 1000));
