// go-redis: pipelines, transactions, pub/sub, scripts, locks, blocking queues; RESP2 and RESP3.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"keydb/clients/jobs"
)

var ctx = context.Background()

func connect(protocol int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: jobs.Address(), Protocol: protocol, PoolSize: 16,
		ReadTimeout: time.Minute, ClientName: "go-jobs"})
}

func pipelines(protocol int) error {
	client := connect(protocol)
	defer client.Close()
	client.FlushDB(ctx)
	replies, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := 0; i < 5000; i++ {
			pipe.Set(ctx, "p"+strconv.Itoa(i), i, time.Hour)
			pipe.Incr(ctx, "p"+strconv.Itoa(i))
		}
		pipe.HSet(ctx, "h", "a", 1, "b", 2)
		pipe.HGetAll(ctx, "h")
		pipe.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "m"})
		pipe.ZRangeWithScores(ctx, "z", 0, -1)
		return nil
	})
	if err != nil {
		return err
	}
	for i := 0; i < 5000; i++ {
		if got := replies[2*i+1].(*redis.IntCmd).Val(); got != int64(i+1) {
			return jobs.Expect(false, i, got)
		}
	}
	hash := replies[10001].(*redis.MapStringStringCmd).Val()
	scores := replies[10003].(*redis.ZSliceCmd).Val()
	return jobs.Expect(hash["a"] == "1" && hash["b"] == "2" && len(scores) == 1 && scores[0].Score == 1.5, hash, scores)
}

func optimisticIncrements() error {
	client := connect(3)
	defer client.Close()
	client.Set(ctx, "balance", 0, 0)
	err := jobs.InParallel(8, func(int) error {
		for done := 0; done < 25; {
			err := client.Watch(ctx, func(tx *redis.Tx) error {
				value, err := tx.Get(ctx, "balance").Int()
				if err != nil {
					return err
				}
				_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
					pipe.Set(ctx, "balance", value+1, 0)
					return nil
				})
				return err
			}, "balance")
			if err == nil {
				done++
			} else if !errors.Is(err, redis.TxFailedErr) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return jobs.Expect(client.Get(ctx, "balance").Val() == "200", client.Get(ctx, "balance").Val())
}

func chat(protocol int) error {
	const members, lines = 4, 250
	client := connect(protocol)
	defer client.Close()
	var listeners [members]*redis.PubSub
	for i := range listeners {
		listeners[i] = client.Subscribe(ctx, "room")
		defer listeners[i].Close()
		if _, err := listeners[i].Receive(ctx); err != nil {
			return err
		}
	}
	err := jobs.InParallel(members, func(i int) error {
		for n := 0; n < lines; n++ {
			if got, err := client.Publish(ctx, "room", fmt.Sprintf("%d %d", i, n)).Result(); err != nil || got != members {
				return jobs.Expect(false, got, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, listener := range listeners {
		var next [members]int
		for left := members * lines; left > 0; left-- {
			message, err := listener.ReceiveTimeout(ctx, 30*time.Second)
			if err != nil {
				return err
			}
			var speaker, n int
			fmt.Sscanf(message.(*redis.Message).Payload, "%d %d", &speaker, &n)
			if next[speaker] != n {
				return jobs.Expect(false, "order", speaker, n, next[speaker])
			}
			next[speaker]++
		}
	}
	return nil
}

func rateLimiter() error {
	client := connect(3)
	defer client.Close()
	client.ScriptFlush(ctx)
	limiter := redis.NewScript(`
		local used = redis.call('INCR', KEYS[1])
		if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
		return used <= tonumber(ARGV[1])`)
	var allowed int64
	err := jobs.InParallel(4, func(int) error {
		for i := 0; i < 100; i++ {
			yes, err := limiter.Run(ctx, client, []string{"limit"}, 250, 600000).Bool()
			if err != nil && err != redis.Nil {
				return err
			}
			if yes {
				atomic.AddInt64(&allowed, 1)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return jobs.Expect(allowed == 250, allowed)
}

func distributedLock() error {
	client := connect(3)
	defer client.Close()
	unlock := redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	var inside, entered int64
	err := jobs.InParallel(8, func(i int) error {
		for done := 0; done < 25; {
			token := fmt.Sprintf("%d-%d", i, done)
			got, err := client.SetNX(ctx, "lock", token, time.Minute).Result()
			if err != nil {
				return err
			}
			if !got {
				time.Sleep(time.Millisecond)
				continue
			}
			if atomic.AddInt64(&inside, 1) != 1 {
				return jobs.Expect(false, "two inside")
			}
			atomic.AddInt64(&entered, 1)
			client.Incr(ctx, "entered")
			atomic.AddInt64(&inside, -1)
			if n, err := unlock.Run(ctx, client, []string{"lock"}, token).Int(); err != nil || n != 1 {
				return jobs.Expect(false, n, err)
			}
			done++
		}
		return nil
	})
	if err != nil {
		return err
	}
	return jobs.Expect(entered == 200, entered)
}

func streamQueue() error {
	client := connect(3)
	defer client.Close()
	client.XGroupCreateMkStream(ctx, "stream", "workers", "0")
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := 0; i < jobs.Count; i++ {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: "stream", Values: map[string]interface{}{"n": i}})
		}
		return nil
	})
	if err != nil {
		return err
	}
	var done int64
	work := func(message redis.XMessage) error {
		atomic.AddInt64(&done, 1)
		return client.XAck(ctx, "stream", "workers", message.ID).Err()
	}
	err = jobs.InParallel(4, func(i int) error {
		for {
			got, err := client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "workers", Consumer: strconv.Itoa(i),
				Streams: []string{"stream", ">"}, Count: 10, Block: -1}).Result()
			if err == redis.Nil {
				return nil
			} else if err != nil {
				return err
			}
			for _, message := range got[0].Messages {
				// Every tenth is left behind by the first who gets it.
				if n, _ := strconv.Atoi(message.Values["n"].(string)); n%10 == 0 {
					continue
				}
				if err := work(message); err != nil {
					return err
				}
			}
		}
	})
	for start := "0-0"; err == nil; {
		var messages []redis.XMessage
		messages, start, err = client.XAutoClaim(ctx, &redis.XAutoClaimArgs{Stream: "stream", Group: "workers",
			Consumer: "last", Start: start, Count: 30}).Result()
		for _, message := range messages {
			if err := work(message); err != nil {
				return err
			}
		}
		if start == "0-0" {
			break
		}
	}
	if err != nil {
		return err
	}
	pending := client.XPending(ctx, "stream", "workers").Val()
	return jobs.Expect(done == jobs.Count && pending.Count == 0, done, pending)
}

func main() {
	jobs.RunAll([]jobs.Job{
		{"pipelines", func() error { return pipelines(2) }},
		{"pipelines_resp3", func() error { return pipelines(3) }},
		{"optimistic_increments", optimisticIncrements},
		{"chat", func() error { return chat(2) }},
		{"chat_resp3", func() error { return chat(3) }},
		{"rate_limiter", rateLimiter},
		{"distributed_lock", distributedLock},
		{"stream_queue", streamQueue},
	})
}
