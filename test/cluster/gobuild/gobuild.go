// SPDX-License-Identifier: Apache-2.0

// Package gobuild runs builds of Go programs that take minutes, and prints how
// far they are.
package gobuild

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A Build is a program and the command that builds it.
type Build struct {
	// Label is what progress calls it.
	Label string
	// Package is the main package, in the module of Dir.
	Dir, Package string
	// Command runs go build with the flag -v.
	Command *exec.Cmd
}

// Command is go with these arguments, in a directory: for static programs,
// without the caller's settings.
func Command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "PWD="+dir)
	return command
}

// Run builds, and prints now and then how many packages are compiled of those
// that the cache of Go lacks, and the time passed since started. An error has
// what go printed.
func (b Build) Run(ctx context.Context, out io.Writer, started time.Time) error {
	return withTicker(out, b.Label, started, func(far *count) error {
		stale, err := stalePackages(ctx, b.Dir, b.Package)
		if err != nil {
			return err
		}
		far.all.Store(int64(len(stale)))
		rest, err := run(b.Command, stale, far)
		if err != nil {
			return fmt.Errorf("%s in %s: %w\n%s", b.Label, b.Dir, err, rest)
		}
		return nil
	})
}

// stalePackages names the packages of a program that the cache of Go lacks, the
// program's own among them.
func stalePackages(ctx context.Context, dir, program string) (map[string]bool, error) {
	command := Command(ctx, dir, "list", "-mod=readonly", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", program)
	var messages bytes.Buffer
	command.Stderr = &messages
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages of %s in %s: %w\n%s", program, dir, err, bytes.TrimSpace(messages.Bytes()))
	}
	stale := map[string]bool{}
	for name := range strings.FieldsSeq(string(output)) {
		stale[name] = true
	}
	return stale, nil
}

// run runs go build -v, which prints the name of each package that it compiles,
// and returns all else that it prints.
func run(command *exec.Cmd, stale map[string]bool, far *count) (rest string, err error) {
	output, err := command.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := command.Start(); err != nil {
		return "", err
	}
	var lines []string
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		if stale[scanner.Text()] {
			far.compiled.Add(1)
			continue
		}
		lines = append(lines, scanner.Text())
	}
	// A line that is too long ends the scan; go must not wait for its reader.
	_, _ = io.Copy(io.Discard, output)
	return strings.Join(lines, "\n"), command.Wait()
}
