// Package jobs is what the Go programs share: where the server is, and how a job's outcome is told.
package jobs

import (
	"fmt"
	"os"
)

// Count is the number of jobs of a queue; every tenth fails the first time it is tried.
const Count = 1000

// Job is one of a program's.
type Job struct {
	Name string
	Run  func() error
}

// Address is the server's.
func Address() string {
	return os.Getenv("REDIS_HOST") + ":" + os.Getenv("REDIS_PORT")
}

// Expect is an error unless the condition holds.
func Expect(condition bool, about ...interface{}) error {
	if condition {
		return nil
	}
	return fmt.Errorf("not as expected: %v", about)
}

// RunAll runs jobs one after another and exits.
func RunAll(all []Job) {
	status := 0
	for _, job := range all {
		if err := job.Run(); err != nil {
			fmt.Printf("failed %s: %v\n", job.Name, err)
			status = 1
		} else {
			fmt.Printf("ok %s\n", job.Name)
		}
	}
	os.Exit(status)
}

// InParallel runs work(0) to work(n - 1) at the same time and returns the first error.
func InParallel(n int, work func(int) error) error {
	errs := make(chan error, n)
	for i := 0; i < n; i++ {
		go func(i int) { errs <- work(i) }(i)
	}
	var first error
	for i := 0; i < n; i++ {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}
