// What the Node programs share: where the server is, and how a job's outcome is told.
export const host = process.env.REDIS_HOST;
export const port = Number(process.env.REDIS_PORT);
export const JOBS = 1000;
// Every tenth job fails the first time it is tried.
export const FAILING = JOBS / 10;

export function expect(condition, ...about) {
  if (!condition) {
    throw new Error(`not as expected: ${about.map((x) => JSON.stringify(x)).join(" ")}`);
  }
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Runs functions one after another and exits.
export async function run(jobs) {
  let failed = 0;
  for (const job of jobs) {
    try {
      await job();
      console.log(`ok ${job.name}`);
    } catch (error) {
      failed++;
      console.log(`failed ${job.name}: ${error.message}`);
      console.log(error.stack);
    }
  }
  process.exit(failed ? 1 : 0);
}
