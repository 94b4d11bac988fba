// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// containerLog names the log of a container.
type containerLog struct{ namespace, pod, container string }

// maxLine is how many bytes of a line are kept together where lines of several logs are mixed.
const maxLine = 64 << 10

// retryEvery is how long to wait before a log that is followed is asked for again.
const retryEvery = time.Second

// printLogs prints logs one after the other, or line by line as they come if they are followed.
func (l *logReading) printLogs(ctx context.Context, w io.Writer, logs []containerLog, options *corev1.PodLogOptions) error {
	out := &lineWriter{w: w, mixed: l.follow && len(logs) > 1}
	if !l.follow {
		for _, log := range logs {
			if err := l.printLog(ctx, out, log, options); err != nil {
				return err
			}
		}
		return nil
	}
	all, following := errgroup.WithContext(ctx)
	for _, log := range logs {
		all.Go(func() error { return l.printLog(following, out, log, options) })
	}
	err := all.Wait()
	if ctx.Err() != nil {
		return nil // the user ends a log that is followed
	}
	return err
}

// printLog prints one log.
func (l *logReading) printLog(ctx context.Context, out *lineWriter, log containerLog, options *corev1.PodLogOptions) error {
	options = options.DeepCopy()
	options.Container = log.container
	prefix := ""
	if l.prefix {
		prefix = fmt.Sprintf("[pod/%s/%s] ", log.pod, log.container)
	}
	read := func() error {
		body, err := l.streams.Pods(log.namespace).GetLogs(log.pod, options).Stream(ctx)
		if err != nil {
			return err
		}
		defer body.Close()
		return out.copyLines(body, prefix)
	}
	err := read()
	if l.follow && !l.previous && isWaiting(err) {
		err = l.retryWaiting(ctx, err, read)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("reading the log of container %s of pod %s: %w", log.container, log.pod, err)
	switch {
	case l.ignoreErrors && ctx.Err() == nil:
		fmt.Fprintln(l.notes, err)
		return nil
	case apierrors.IsForbidden(err):
		return exit.RefusalError(err)
	}
	return err
}

// isWaiting reports whether an error may say that a container has not started yet.
func isWaiting(err error) bool { return apierrors.IsBadRequest(err) }

// retryWaiting reads a log again until its container has started.
func (l *logReading) retryWaiting(ctx context.Context, last error, read func() error) error {
	fmt.Fprintf(l.notes, "%v; waiting for up to %s\n", last, l.patience)
	err := wait.PollUntilContextTimeout(ctx, retryEvery, l.patience, false, func(context.Context) (bool, error) {
		if last = read(); isWaiting(last) {
			return false, nil
		}
		return true, last
	})
	if errors.Is(err, context.DeadlineExceeded) && isWaiting(last) {
		return last
	}
	return err
}

// lineWriter writes the lines of logs.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
	// mixed is true if several logs are written at once. A line that is longer than maxLine is cut then, so that no other
	// line comes into it.
	mixed bool
}

// copyLines copies a log, with a prefix before each line. With a prefix the last line gets an end if it has none, as where
// --limit-bytes cuts it.
func (o *lineWriter) copyLines(log io.Reader, prefix string) error {
	in := bufio.NewReaderSize(log, maxLine)
	begins := true
	for {
		part, err := in.ReadSlice('\n')
		isLonger := errors.Is(err, bufio.ErrBufferFull)
		if len(part) > 0 {
			var text []byte
			if begins {
				text = append(text, prefix...)
			}
			text = append(text, part...)
			if ends := part[len(part)-1] == '\n'; !ends && (isLonger && o.mixed || !isLonger && prefix != "") {
				text = append(text, '\n')
			}
			begins = !isLonger || o.mixed
			if err := o.writeText(text); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !isLonger:
			return err
		}
	}
}

func (o *lineWriter) writeText(text []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := o.w.Write(text)
	return err
}
