// BullMQ: 1,000 jobs of which every tenth is retried, a rate limit, delayed and prioritised jobs, a flow of jobs.
import { FlowProducer, Queue, QueueEvents, Worker } from "bullmq";
import { FAILING, JOBS, expect, host, port, run } from "./common.mjs";

const connection = { host, port };
const range = (n) => [...Array(n).keys()];

// A queue with its worker and events; `finished` resolves after that many jobs have completed.
async function start(name, work, jobs, options = {}) {
  const queue = new Queue(name, { connection });
  const events = new QueueEvents(name, { connection });
  await events.waitUntilReady();
  let completed = 0, finish;
  const finished = new Promise((resolve) => { finish = resolve; });
  events.on("completed", () => { if (++completed === jobs) finish(); });
  const worker = new Worker(name, work, { connection, concurrency: 20, ...options });
  worker.on("error", (error) => console.log(error.stack));
  const close = async () => { await worker.close(); await events.close(); await queue.close(); };
  return { queue, events, worker, finished, close };
}

async function thousandJobs() {
  let tries = 0;
  const work = async (job) => {
    tries++;
    if (job.data.n % 10 === 0 && job.attemptsMade === 0) throw new Error("the first try fails");
    return job.data.n ** 2;
  };
  const { queue, finished, close } = await start("jobs", work, JOBS);
  const jobs = await queue.addBulk(range(JOBS).map((n) => ({ name: "square", data: { n }, opts: { attempts: 3 } })));
  await finished;
  expect(tries === JOBS + FAILING, tries);
  const counts = await queue.getJobCounts("completed", "failed", "active", "wait");
  expect(counts.completed === JOBS && counts.failed === 0 && counts.active === 0 && counts.wait === 0, counts);
  const last = await queue.getJob(jobs[JOBS - 1].id);
  expect(last.returnvalue === (JOBS - 1) ** 2, last.returnvalue);
  await queue.obliterate();
  await close();
}

async function backoff() {
  const work = async (job) => { if (job.attemptsMade < 2) throw new Error("not yet"); return "done"; };
  const { queue, finished, close } = await start("backoff", work, 20);
  for (const n of range(20)) {
    await queue.add("late", { n }, { attempts: 5, backoff: { type: "exponential", delay: 10 }, delay: n * 5 });
  }
  await finished;
  expect(await queue.getCompletedCount() === 20);
  await close();
}

async function rateLimit() {
  const { queue, finished, close } = await start("limited", async () => 1, 60, { limiter: { max: 20, duration: 200 } });
  const started = Date.now();
  await queue.addBulk(range(60).map((n) => ({ name: "x", data: { n } })));
  await finished;
  // 60 jobs are three windows: two whole ones lie between the first and the last job.
  expect(Date.now() - started >= 400);
  await close();
}

async function priorities() {
  const order = [];
  const queue = new Queue("priorities", { connection });
  for (const priority of [5, 1, 3, 2, 4]) await queue.add("x", { priority }, { priority });
  await queue.close();
  const { finished, close } = await start("priorities", async (job) => { order.push(job.data.priority); }, 5, { concurrency: 1 });
  await finished;
  expect(order.join() === "1,2,3,4,5", order);
  await close();
}

async function flow() {
  const work = async (job) => {
    if (job.name !== "sum") return job.data.n;
    return Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0);
  };
  const { queue, finished, close } = await start("flow", work, 11);
  const producer = new FlowProducer({ connection });
  const children = range(10).map((n) => ({ name: "part", queueName: "flow", data: { n } }));
  const { job } = await producer.add({ name: "sum", queueName: "flow", children });
  await finished;
  const parent = await queue.getJob(job.id);
  expect(parent.returnvalue === 45, parent.returnvalue);
  await producer.close();
  await close();
}

async function repeated() {
  const { queue, finished, close } = await start("repeated", async () => 1, 5);
  await queue.upsertJobScheduler("every", { every: 50 }, { name: "tick" });
  await finished;
  expect(await queue.removeJobScheduler("every"));
  await close();
}

run([thousandJobs, backoff, rateLimit, priorities, flow, repeated]);
