// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
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

// Runner does the work of a gate.
type Runner interface {
	Run(ctx context.Context, job Job) (Report, error)
}

// InProcess does it here. A hostile bundle can use up this process's memory, so
// it is for bundles of those who run it themselves.
type InProcess struct{}

// Run implements Runner.
func (InProcess) Run(ctx context.Context, job Job) (Report, error) { return check(ctx, job) }

// Child does it in another process of the same program, which has limits, no
// environment, and nothing else to lose. The program must call Serve when
// IsChild says so, before it does anything else.
type Child struct {
	// Path is the program; this one if empty.
	Path string
	// Memory is the limit in bytes; 1 GiB if zero.
	Memory uint64
}

const (
	childVariable  = "REGATTA_GATE_CHILD"
	memoryVariable = "REGATTA_GATE_MEMORY"
	defaultMemory  = 1 << 30
	maxReport      = 32 << 20
)

// Run implements Runner.
func (c Child) Run(ctx context.Context, job Job) (Report, error) {
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
	in, err := json.Marshal(job)
	if err != nil {
		return Report{}, fmt.Errorf("describing the work: %w", err)
	}
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, path)
	// Nothing is inherited: the environment may have credentials in it.
	cmd.Env = []string{childVariable + "=1", fmt.Sprintf("%s=%d", memoryVariable, memory), "GOMAXPROCS=1"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &limited{&out, maxReport}, &limited{&complaint, 64 << 10}
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return overtime(Report{}, job.Bundle.Name, "unknown: the process was ended"), nil
	case err != nil:
		return crashed(job, err, complaint.String())
	}
	var report Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return Report{}, fmt.Errorf("reading the report: %w", err)
	}
	return report, nil
}

// crashed tells a bundle that was too much for the process from a process that
// did not work.
func crashed(job Job, err error, complaint string) (Report, error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return Report{}, fmt.Errorf("running the gate's process: %w", err)
	}
	complaint, _, _ = strings.Cut(complaint, "\n")
	if exit.ExitCode() == exitFailed {
		return Report{}, fmt.Errorf("the gate's process failed: %s", complaint)
	}
	return Report{Refused: Limits, Problems: module.Problems{{
		File: job.Bundle.Name, Row: 1, Col: 1, Code: limitError,
		Message: fmt.Sprintf("checking used up its memory or time and was ended (%v): %s", err, complaint),
	}}}, nil
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

// exitFailed is the exit code of a child that could not do its work, whatever
// the bundle is like.
const exitFailed = 3

// IsChild says whether this process was started by a Child.
func IsChild() bool { return os.Getenv(childVariable) != "" }

// Serve does the work that a Child sent, and returns the exit code.
func Serve(in io.Reader, out, complaint io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintln(complaint, err)
		return exitFailed
	}
	if err := limitSelf(os.Getenv(memoryVariable)); err != nil {
		return fail(err)
	}
	var job Job
	if err := json.NewDecoder(in).Decode(&job); err != nil {
		return fail(fmt.Errorf("reading the work: %w", err))
	}
	report, err := check(context.Background(), job) // the parent keeps the time
	if err != nil {
		return fail(err)
	}
	if err := json.NewEncoder(out).Encode(report); err != nil {
		return fail(fmt.Errorf("writing the report: %w", err))
	}
	return 0
}
