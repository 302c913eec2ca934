// ioredis: pipelines, transactions, pub/sub, commands made of scripts, locks.
import { Redis } from "ioredis";
import { JOBS, expect, host, port, run, sleep } from "./common.mjs";

const connect = (options = {}) => new Redis({ host, port, ...options });
const range = (n) => [...Array(n).keys()];

async function pipelines() {
  const redis = connect();
  const pipe = redis.pipeline();
  for (const i of range(5000)) pipe.set(`p${i}`, i).incr(`p${i}`);
  const replies = await pipe.exec();
  expect(replies.every(([error]) => error === null));
  expect(range(5000).every((i) => replies[2 * i + 1][1] === i + 1));
  const all = await Promise.all(range(2000).map((i) => redis.get(`p${i}`)));
  expect(all.every((value, i) => value === String(i + 1)));
  await redis.quit();
}

async function autopipelining() {
  const redis = connect({ enableAutoPipelining: true });
  await Promise.all(range(3000).map((i) => redis.hset("auto", i, i * i)));
  const hash = await redis.hgetall("auto");
  expect(Object.keys(hash).length === 3000 && hash["77"] === String(77 * 77));
  let count = 0;
  for await (const keys of redis.hscanStream("auto", { count: 100 })) count += keys.length / 2;
  expect(count === 3000, count);
  await redis.quit();
}

async function transactions() {
  const clients = range(4).map(() => connect());
  await clients[0].set("balance", 0);
  await Promise.all(clients.map(async (redis) => {
    for (let done = 0; done < 50;) {
      await redis.watch("balance");
      const value = Number(await redis.get("balance"));
      if (await redis.multi().set("balance", value + 1).exec()) done++;
    }
  }));
  expect(await clients[0].get("balance") === "200");
  const replies = await clients[0].multi().set("t", "x").lpush("t", 1).get("t").exec();
  expect(replies[1][0].message.startsWith("WRONGTYPE") && replies[2][1] === "x", replies);
  await Promise.all(clients.map((redis) => redis.quit()));
}

async function chat() {
  const members = 4, lines = 250;
  const heard = range(members).map(() => new Map());
  let left = members * members * lines, finished;
  const all = new Promise((resolve) => { finished = resolve; });
  const listeners = await Promise.all(range(members).map(async (i) => {
    const listener = connect();
    listener.on("message", (channel, message) => {
      const [speaker, n] = message.split(" ").map(Number);
      const before = heard[i].get(speaker) ?? -1;
      heard[i].set(speaker, n === before + 1 ? n : NaN);
      if (--left === 0) finished();
    });
    await listener.subscribe("room");
    return listener;
  }));
  const speakers = range(members).map(() => connect());
  await Promise.all(speakers.map(async (speaker, i) => {
    for (const n of range(lines)) expect(await speaker.publish("room", `${i} ${n}`) === members);
  }));
  await all;
  expect(heard.every((m) => m.size === members && [...m.values()].every((n) => n === lines - 1)));
  await Promise.all([...speakers, ...listeners].map((redis) => redis.quit()));
}

async function rateLimiter() {
  const clients = range(4).map(() => {
    const redis = connect();
    redis.defineCommand("limit", {
      numberOfKeys: 1,
      lua: "local used = redis.call('incr', KEYS[1]) if used == 1 then redis.call('pexpire', KEYS[1], ARGV[2]) end "
        + "return used <= tonumber(ARGV[1])",
    });
    return redis;
  });
  await clients[0].script("FLUSH");
  const answers = await Promise.all(clients.flatMap((redis) => range(100).map(() => redis.limit("limited", 250, 600000))));
  expect(answers.filter((a) => a === 1).length === 250);
  expect(answers.filter((a) => a === null).length === 150);
  const piped = await clients[1].pipeline().limit("other", 1, 60000).limit("other", 1, 60000).exec();
  expect(piped[0][1] === 1 && piped[1][1] === null, piped);
  await Promise.all(clients.map((redis) => redis.quit()));
}

const UNLOCK = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

async function distributedLock() {
  let inside = 0, entered = 0;
  await Promise.all(range(6).map(async (i) => {
    const redis = connect();
    for (let done = 0; done < 25;) {
      const token = `${i}-${done}`;
      if (await redis.set("lock", token, "PX", 60000, "NX") !== "OK") {
        await sleep(1);
        continue;
      }
      expect(++inside === 1);
      entered++;
      await redis.incr("entered");
      inside--;
      expect(await redis.eval(UNLOCK, 1, "lock", token) === 1);
      done++;
    }
    await redis.quit();
  }));
  expect(entered === 150);
}

async function blockingQueue() {
  const producer = connect();
  const seen = new Map();
  const workers = range(4).map(async () => {
    const redis = connect(), tries = connect();
    for (;;) {
      const job = await redis.blmove("todo", "doing", "LEFT", "RIGHT", 0);
      if (job === "end") break;
      if (Number(job) % 10 === 0 && await tries.hincrby("tries", job, 1) === 1) {
        await tries.multi().lrem("doing", 1, job).rpush("todo", job).exec();
        continue;
      }
      seen.set(job, (seen.get(job) ?? 0) + 1);
      await tries.lrem("doing", 1, job);
    }
    redis.disconnect();
    tries.disconnect();
  });
  for (const i of range(JOBS)) await producer.rpush("todo", i);
  while (seen.size < JOBS) await sleep(20);
  await producer.rpush("todo", "end", "end", "end", "end");
  await Promise.all(workers);
  expect([...seen.values()].every((n) => n === 1));
  await producer.quit();
}

run([pipelines, autopipelining, transactions, chat, rateLimiter, distributedLock, blockingQueue]);
