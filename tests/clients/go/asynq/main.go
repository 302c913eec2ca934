// asynq: 1,000 jobs of which every tenth is retried, unique and scheduled jobs.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"keydb/clients/jobs"
)

var (
	connection = asynq.RedisClientOpt{Addr: jobs.Address()}
	tries      int64
	mutex      sync.Mutex
	done       = map[uint32]int{}
	finished   = make(chan struct{}, 1)
	wanted     int
)

func handle(ctx context.Context, task *asynq.Task) error {
	atomic.AddInt64(&tries, 1)
	n := binary.BigEndian.Uint32(task.Payload())
	if retried, _ := asynq.GetRetryCount(ctx); n%10 == 0 && retried == 0 {
		return errors.New("the first try of every tenth job fails")
	}
	mutex.Lock()
	defer mutex.Unlock()
	done[n]++
	if len(done) == wanted {
		finished <- struct{}{}
	}
	return nil
}

func task(n int) *asynq.Task {
	payload := make([]byte, 4)
	binary.BigEndian.PutUint32(payload, uint32(n))
	return asynq.NewTask("square", payload)
}

// await starts to wait for so many different jobs.
func await(count int) {
	mutex.Lock()
	defer mutex.Unlock()
	done = map[uint32]int{}
	wanted = count
}

func finish() error {
	select {
	case <-finished:
		return nil
	case <-time.After(2 * time.Minute):
		mutex.Lock()
		defer mutex.Unlock()
		return jobs.Expect(false, "done", len(done), "of", wanted)
	}
}

func thousandJobs() error {
	client := asynq.NewClient(connection)
	defer client.Close()
	await(jobs.Count)
	err := jobs.InParallel(4, func(i int) error {
		for n := i; n < jobs.Count; n += 4 {
			if _, err := client.Enqueue(task(n), asynq.MaxRetry(3), asynq.Retention(time.Hour)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := finish(); err != nil {
		return err
	}
	return jobs.Expect(tries == jobs.Count+jobs.Count/10, tries)
}

// completed waits until so many jobs are kept as completed: that is written after the handler's end.
func completed() error {
	inspector := asynq.NewInspector(connection)
	defer inspector.Close()
	var info *asynq.QueueInfo
	var err error
	for i := 0; i < 600; i++ {
		if info, err = inspector.GetQueueInfo("default"); err != nil {
			return err
		}
		if info.Completed == jobs.Count {
			return jobs.Expect(info.Pending == 0 && info.Retry == 0 && info.Archived == 0 && info.Failed == jobs.Count/10, info)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return jobs.Expect(false, info)
}

func uniqueJobs() error {
	client := asynq.NewClient(connection)
	defer client.Close()
	if _, err := client.Enqueue(task(1), asynq.Unique(time.Hour), asynq.ProcessIn(time.Hour)); err != nil {
		return err
	}
	_, err := client.Enqueue(task(1), asynq.Unique(time.Hour))
	return jobs.Expect(errors.Is(err, asynq.ErrDuplicateTask), err)
}

func scheduledJobs() error {
	client := asynq.NewClient(connection)
	defer client.Close()
	await(20)
	for n := 0; n < 20; n++ {
		if _, err := client.Enqueue(task(5000+n), asynq.ProcessIn(300*time.Millisecond)); err != nil {
			return err
		}
	}
	return finish()
}

func main() {
	server := asynq.NewServer(connection, asynq.Config{Concurrency: 10, LogLevel: asynq.ErrorLevel,
		DelayedTaskCheckInterval: 100 * time.Millisecond,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 10 * time.Millisecond }})
	if err := server.Start(asynq.HandlerFunc(handle)); err != nil {
		log.Fatal(err)
	}
	jobs.RunAll([]jobs.Job{
		{"thousand_jobs", thousandJobs},
		{"completed", completed},
		{"unique_jobs", uniqueJobs},
		{"scheduled_jobs", scheduledJobs},
	})
}
