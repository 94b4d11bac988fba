// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/engine/module"
)

// Runner runs the stages of a gate.
type Runner interface {
	RunJob(ctx context.Context, job Job) (Report, error)
}

// InProcess runs the stages in this process. A hostile bundle can use up its memory, so it is for
// users who check their own bundles.
type InProcess struct{}

// RunJob implements Runner.
func (InProcess) RunJob(ctx context.Context, job Job) (Report, error) {
	return runStages(ctx, job, listLines(job.Records), func(Stage, Report) {})
}

// Child runs the stages in another process of the same program, which has limits, no environment, and
// no other task. The program must call ServeChild if IsChild is true, before it does anything else.
type Child struct {
	// Path is the path of the program; this program if empty.
	Path string
	// Memory is the limit in bytes; 1 GiB if zero.
	Memory uint64
	// Left returns how many bytes this process's container has left; nil if nothing limits it. The child gets no more than that.
	Left func() (bytes uint64, limited bool)
}

// leastMemory is how many bytes a child needs for an empty bundle.
const leastMemory = 64 << 20

// NoMemoryError says that no bundle can be checked now, since too little memory is left.
type NoMemoryError struct{ Left uint64 }

func (e *NoMemoryError) Error() string {
	return fmt.Sprintf("the container of the manager has %d MiB of memory left, and checking a bundle takes at least %d MiB", e.Left>>20, leastMemory>>20)
}

const (
	childVariable  = "REGATTA_GATE_CHILD"
	memoryVariable = "REGATTA_GATE_MEMORY"
	defaultMemory  = 1 << 30
	maxReport      = 32 << 20
)

// RunJob implements Runner.
func (c Child) RunJob(ctx context.Context, job Job) (Report, error) {
	path := c.Path
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return Report{}, fmt.Errorf("finding this program: %w", err)
		}
	}
	memory := c.Memory
	if memory == 0 {
		memory = defaultMemory
	}
	if c.Left != nil {
		if left, limited := c.Left(); limited && left < memory {
			if memory = left; left < leastMemory {
				return Report{}, &NoMemoryError{left}
			}
		}
	}
	in, err := json.Marshal(job)
	if err != nil {
		return Report{}, fmt.Errorf("describing the work: %w", err)
	}
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, path)
	// Nothing is inherited: the environment may have credentials in it.
	cmd.Env = []string{childVariable + "=1", fmt.Sprintf("%s=%d", memoryVariable, memory), "GOMAXPROCS=1"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childInput(in, job.Records), &limited{&out, maxReport}, &limited{&complaint, 64 << 10}
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		last, _ := lastProgress(out.Bytes())
		report := timeoutReport(last.Report, job.Bundle.Name, cmp.Or(last.Stage, "unknown"))
		report.LimitedIn = last.Stage
		report.Problems[0].Message += "; its process was ended"
		return report, nil
	case err != nil:
		last, _ := lastProgress(out.Bytes())
		return reportCrash(job, last, err, complaint.String())
	}
	last, err := lastProgress(out.Bytes())
	if err != nil {
		return Report{}, fmt.Errorf("reading the report: %w", err)
	}
	if last.Stage != "" {
		return Report{}, fmt.Errorf("reading the report: it ends in stage %s", last.Stage)
	}
	return last.Report, nil
}

// childInput is what a child reads: the job, and then the records.
func childInput(job []byte, records [][]byte) io.Reader {
	parts := []io.Reader{bytes.NewReader(job), strings.NewReader("\n")}
	for _, line := range records {
		parts = append(parts, bytes.NewReader(line))
	}
	return io.MultiReader(parts...)
}

// progress is what a child writes when it begins a stage, and at the end without one.
type progress struct {
	Stage  Stage  `json:"stage,omitempty"`
	Report Report `json:"report"`
}

// lastProgress reads the last whole progress. It returns an error if the child wrote none.
func lastProgress(out []byte) (last progress, err error) {
	dec := json.NewDecoder(bytes.NewReader(out))
	for n := 0; ; n++ {
		var p progress
		if err := dec.Decode(&p); err != nil {
			if n > 0 {
				return last, nil
			}
			return last, err
		}
		last = p
	}
}

// reportCrash distinguishes a bundle that exceeded the limits from a child that did not work.
func reportCrash(job Job, last progress, err error, complaint string) (Report, error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return Report{}, fmt.Errorf("running the gate's process: %w", err)
	}
	complaint, _, _ = strings.Cut(complaint, "\n")
	if exit.ExitCode() == exitFailed {
		return Report{}, fmt.Errorf("the gate's process failed: %s", complaint)
	}
	report, in := last.Report, ""
	if last.Stage != "" {
		in = fmt.Sprintf(" in stage %s", last.Stage)
	}
	report.Refused, report.LimitedIn = Limits, last.Stage
	report.Problems = module.Problems{{
		File: job.Bundle.Name, Row: 1, Col: 1, Code: limitError,
		Message: fmt.Sprintf("checking used up its memory or time%s and was ended (%v): %s", in, err, complaint),
	}}
	return report, nil
}

// limited drops what is beyond a limit, so that a child cannot fill the memory
// of its parent.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.to.Write(p[:n])
	l.left -= n
	return len(p), nil
}

// exitFailed is the exit code of a child that failed for a reason other than the bundle.
const exitFailed = 3

// IsChild reports whether this process was started by a Child.
func IsChild() bool { return os.Getenv(childVariable) != "" }

// ServeChild runs the job that a Child sent, and returns the exit code.
func ServeChild(in io.Reader, out, complaint io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintln(complaint, err)
		return exitFailed
	}
	if err := limitSelf(os.Getenv(memoryVariable)); err != nil {
		return fail(err)
	}
	var job Job
	dec := json.NewDecoder(in)
	if err := dec.Decode(&job); err != nil {
		return fail(fmt.Errorf("reading the work: %w", err))
	}
	enc := json.NewEncoder(out)
	begin := func(s Stage, r Report) { _ = enc.Encode(progress{s, r}) }                                       // if this fails, the last write fails too
	report, err := runStages(context.Background(), job, readLines(io.MultiReader(dec.Buffered(), in)), begin) // the parent enforces the time
	if err != nil {
		return fail(err)
	}
	if err := enc.Encode(progress{Report: report}); err != nil {
		return fail(fmt.Errorf("writing the report: %w", err))
	}
	return 0
}
