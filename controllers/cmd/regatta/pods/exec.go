// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"time"

	dockerterm "github.com/moby/term"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/kubectl/pkg/util/term"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// execPatience is how long exec waits for a pod, as in kubectl.
const execPatience = time.Minute

// execution has the flags of exec.
type execution struct {
	*finder
	chooser
	stdin, tty, quiet bool
}

// NewExecCommand makes the command that runs a command in a container.
func NewExecCommand() *cobra.Command {
	e := &execution{finder: newFinder()}
	cmd := &cobra.Command{
		Use:   "exec (POD | KIND/NAME) [-c CONTAINER | -S SIDECARSET] [-it] -- COMMAND [ARGS...]",
		Short: "Run a command in a container of a workload",
		Long: `Exec runs a command in a container of a pod. Of a workload it takes one pod, as kubectl does:
one that runs and is ready, if there is any.

` + sidecarText + `

Exec ends with the exit code of the command.

` + edit.DescribeKinds(e.Allowed),
		Example: `  regatta exec clone/web -- date
  regatta exec asts/db -it -- sh

  # In the container that SidecarSet proxy put into the pod
  regatta exec clone/web -S proxy -- envoy --version`,
		DisableFlagsInUseLine: true,
		RunE:                  e.runExec,
	}
	e.finder.addFlags(cmd, execPatience)
	e.chooser.addFlags(cmd, e.finder)
	f := cmd.Flags()
	f.BoolVarP(&e.stdin, "stdin", "i", false, "pass the standard input to the command")
	f.BoolVarP(&e.tty, "tty", "t", false, "give the command a terminal; needs -i and a terminal as the standard input")
	f.BoolVarP(&e.quiet, "quiet", "q", false, "print only what the command prints")
	return cmd
}

// splitArguments splits POD -- COMMAND.
func splitArguments(cmd *cobra.Command, args []string) (object string, command []string, err error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return "", nil, exit.UsageErrorf("name a pod, or a workload as KIND/NAME")
	case dash < 0 && len(args) > 1:
		return "", nil, exit.UsageErrorf("write the command after --, such as regatta exec %s -- %s", args[0], args[1])
	case dash > 1:
		return "", nil, exit.UsageErrorf("name one pod or workload before --, not %d", dash)
	case len(args) == 1:
		return "", nil, exit.UsageErrorf("there is no command; write it after --")
	}
	return args[0], args[1:], nil
}

func (e *execution) runExec(cmd *cobra.Command, args []string) error {
	object, command, err := splitArguments(cmd, args)
	if err != nil {
		return err
	}
	if _, err := e.parseArgument(object); err != nil {
		return err
	}
	if err := e.openCluster(cmd); err != nil {
		return err
	}
	if e.quiet {
		e.notes = io.Discard
	}
	pod, container, err := e.choosePod(cmd.Context(), object)
	if err != nil {
		return err
	}
	return e.runCommand(cmd, pod, container, command)
}

// choosePod returns the pod and the container that the arguments name.
func (e *execution) choosePod(ctx context.Context, object string) (*corev1.Pod, string, error) {
	pods, err := e.findPods(ctx, object)
	if err != nil {
		return nil, "", err
	}
	if pods, err = e.selectPods(pods, io.Discard); err != nil {
		return nil, "", err
	}
	sort.Sort(sort.Reverse(podutils.ActivePods(pods)))
	pod := pods[0]
	if phase := pod.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		return nil, "", exit.RefusalErrorf("the containers of pod %s have ended; its phase is %s", pod.Name, phase)
	}
	container, err := e.chooseContainer(pod, e.notes)
	return pod, container, err
}

// runCommand runs the command, with a terminal if the user asked for one and has one.
func (e *execution) runCommand(cmd *cobra.Command, pod *corev1.Pod, container string, command []string) error {
	streams := remotecommand.StreamOptions{Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr()}
	tty := term.TTY{Out: streams.Stdout}
	if e.stdin {
		streams.Stdin = cmd.InOrStdin()
		tty.In = streams.Stdin
	}
	switch {
	case !e.tty:
	case !e.stdin || !tty.IsTerminalIn():
		fmt.Fprintln(e.notes, "the command gets no terminal: it needs -i, and a terminal as the standard input")
	default:
		if tty.In == os.Stdin {
			tty.In, tty.Out, _ = dockerterm.StdStreams() // on Windows these translate control sequences
		}
		tty.Raw = true
		// Both outputs of the command are one stream of the terminal.
		streams = remotecommand.StreamOptions{Stdin: tty.In, Stdout: tty.Out, Tty: true}
		streams.TerminalSizeQueue = sizes{tty.MonitorSize(tty.GetSize())}
	}
	refused := false
	executor, err := e.newExecutor(pod, &corev1.PodExecOptions{
		Container: container, Command: command,
		Stdin: streams.Stdin != nil, Stdout: true, Stderr: streams.Stderr != nil, TTY: streams.Tty,
	}, func(err error) { refused = apierrors.IsForbidden(err) })
	if err != nil {
		return err
	}
	err = tty.Safe(func() error { return executor.StreamWithContext(cmd.Context(), streams) })
	return describeExecError(cmd.Context(), err, refused, pod.Name, container)
}

// newExecutor makes the connection to the node of a pod: by WebSocket, or by SPDY where a proxy on the way or the API server
// does not support that. An error of SPDY has no code, so that onFallback gets the one of WebSocket.
func (e *execution) newExecutor(pod *corev1.Pod, options *corev1.PodExecOptions, onFallback func(error)) (remotecommand.Executor, error) {
	request := e.core.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(options, scheme.ParameterCodec)
	old, err := remotecommand.NewSPDYExecutor(e.config, "POST", request.URL())
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	socket, err := remotecommand.NewWebSocketExecutor(e.config, "GET", request.URL().String())
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return remotecommand.NewFallbackExecutor(socket, old, func(err error) bool {
		var failed *httpstream.UpgradeFailureError
		if errors.As(err, &failed) {
			onFallback(failed.Cause)
		}
		return failed != nil || httpstream.IsHTTPSProxyError(err)
	})
}

// describeExecError gives the end of a command its exit code. refused is true if the API server refused the connection.
func describeExecError(ctx context.Context, err error, refused bool, pod, container string) error {
	var ended utilexec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ended):
		return exit.Error{Code: ended.ExitStatus(), Err: fmt.Errorf("the command in container %s of pod %s ended with %d", container, pod, ended.ExitStatus())}
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted; the command in container %s of pod %s may still run", container, pod)
	}
	err = fmt.Errorf("running the command in container %s of pod %s: %w", container, pod, err)
	if refused {
		return exit.RefusalError(err)
	}
	return err
}

// sizes are the sizes of the terminal as they change.
type sizes struct{ of term.TerminalSizeQueue }

// Next waits for the next size. It returns nil when there is none any more.
func (s sizes) Next() *remotecommand.TerminalSize {
	if s.of == nil {
		return nil
	}
	next := s.of.Next()
	if next == nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: next.Width, Height: next.Height}
}
