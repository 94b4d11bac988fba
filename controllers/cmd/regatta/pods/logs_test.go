// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

func TestLogsChoices(t *testing.T) {
	s := newShop(t)
	s.createPods(t)
	log := func(pod, container string) string {
		return fmt.Sprintf("log of %s in %s\nsecond line\n", container, pod)
	}
	prefixed := func(pod, container string) string {
		return fmt.Sprintf("[pod/%[2]s/%[1]s] log of %[1]s in %[2]s\n[pod/%[2]s/%[1]s] second line\n", container, pod)
	}
	defaulted := "Defaulted container \"main\" out of: main, log\n"
	for line, want := range map[string]typed{
		"clone/web":                    {Out: log("web-b", "main"), Err: "Found 4 pods, using pod/web-b\n" + defaulted, Streams: []string{"web-b/log?container=main"}},
		"clone/web -c log --prefix":    {Out: prefixed("web-b", "log"), Err: "Found 4 pods, using pod/web-b\n", Streams: []string{"web-b/log?container=log"}},
		"clone/web -S proxy -c envoy":  {Out: log("web-c", "envoy-2"), Err: "3 of 4 pods have no container of SidecarSet proxy\n", Streams: []string{"web-c/log?container=envoy-2"}},
		"web-a":                        {Out: log("web-a", "log"), Streams: []string{"web-a/log?container=log"}},
		"web-b -f -c log":              {Out: log("web-b", "log"), Streams: []string{"web-b/log?container=log&follow=true"}},
		"web-b -c log -p --timestamps": {Out: log("web-b", "log"), Streams: []string{"web-b/log?container=log&previous=true&timestamps=true"}},
		"web-b -c log --tail 3 --since 1500ms --limit-bytes 9 --insecure-skip-tls-verify-backend": {Out: log("web-b", "log"),
			Streams: []string{"web-b/log?container=log&insecureSkipTLSVerifyBackend=true&limitBytes=9&sinceSeconds=2&tailLines=3"}},
		"web-b -c log --tail 0 --since-time 2026-12-24T10:00:00+01:00": {Out: log("web-b", "log"), Streams: []string{"web-b/log?container=log&sinceTime=2026-12-24T09%3A00%3A00Z&tailLines=0"}},
		"clone/web --all-pods": {Out: prefixed("web-b", "main") + prefixed("web-c", "main") + prefixed("web-a", "log") + prefixed("web-d", "main"),
			Streams: []string{"web-b/log?container=main", "web-c/log?container=main", "web-a/log?container=log", "web-d/log?container=main"}},
		"clone/web --all-pods -S log": {Out: prefixed("web-b", "log") + prefixed("web-c", "log"), Err: "2 of 4 pods have no container of SidecarSet log\n",
			Streams: []string{"web-b/log?container=log", "web-c/log?container=log"}},
		"web-c -S proxy --all-containers": {Out: log("web-c", "envoy-2") + log("web-c", "certs"), Streams: []string{"web-c/log?container=envoy-2", "web-c/log?container=certs"}},
		"web-b --all-containers --prefix": {Out: prefixed("web-b", "main") + prefixed("web-b", "log"), Streams: []string{"web-b/log?container=main", "web-b/log?container=log"}},
		"-l app=web -S log":               {Out: log("web-b", "log") + log("web-c", "log"), Err: "2 of 4 pods have no container of SidecarSet log\n", Streams: []string{"web-b/log?container=log&tailLines=10", "web-c/log?container=log&tailLines=10"}},
		"-l app=web -S proxy -c certs --tail -1": {Out: log("web-c", "certs"), Err: "3 of 4 pods have no container of SidecarSet proxy\n",
			Streams: []string{"web-c/log?container=certs"}},

		"":                                {Err: "name a pod, or a workload as KIND/NAME, or select pods with --selector", Code: 2},
		"clone/web -l app=web":            {Err: "--selector names the pods; leave out clone/web", Code: 2},
		"web-b log":                       {Err: "name one pod or workload, not 2; a container is named with -c", Code: 2},
		"web-b --since -1s":               {Err: "--since is -1s; want more than 0", Code: 2},
		"web-b --since 1s --since-time x": {Err: "--since and --since-time exclude each other", Code: 2},
		"web-b --since-time today":        {Err: `--since-time is "today"; want a time such as 2026-12-24T10:00:00Z`, Code: 2},
		"web-b --tail -2":                 {Err: "--tail is -2; want 0 or more, or -1 for all lines", Code: 2},
		"web-b --limit-bytes -1":          {Err: "--limit-bytes is -1; want 1 or more, or 0 for no limit", Code: 2},
		"web-b --max-log-requests 0":      {Err: "--max-log-requests is 0; want 1 or more", Code: 2},
		"web-b --all-containers -c log":   {Err: "--all-containers and --container exclude each other", Code: 2},
		"web-b --lines 3":                 {Err: "unknown flag: --lines; regatta logs --help lists them", Code: 2},
		"-l app=(":                        {Err: `--selector is "app=(": unable to parse requirement: found '(', expected: identifier`, Code: 2},
		"acj/web":                         {Err: "this command is not for objects of kind AdvancedCronJob; want " + edit.JoinArguments(kindsWithPods(), ", ", " or ") + ", or POD", Code: 2},
		"clone/web -f --all-pods --all-containers --max-log-requests 9": {Err: "--max-log-requests is 9, and 11 logs would be followed; choose fewer, or raise it", Code: 2},
		"-l app=none":              {Err: "no pod in namespace default has the labels app=none", Code: 1},
		"web-b -c other":           {Err: "container other is not valid for pod web-b out of: main, log", Code: 1},
		"web-a -S proxy":           {Err: "pod web-a has no container of SidecarSet proxy; it has containers of no SidecarSet", Code: 1},
		"none":                     {Err: "there is no pod none in namespace default", Code: 3},
		"clone/web -n none -S log": {Err: "there is no CloneSet web in namespace none", Code: 3},
	} {
		t.Run(line, func(t *testing.T) { s.wants(t, NewLogsCommand(), line, want) })
	}
}

func TestLogsAreFollowedTogether(t *testing.T) {
	s := newShop(t)
	s.createPods(t)
	var asked atomic.Int32
	both := make(chan struct{})
	s.setAnswer(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 2 {
			close(both)
		}
		fmt.Fprint(w, "the first ")
		_ = http.NewResponseController(w).Flush() // the client would miss it otherwise
		<-both                                    // both logs are read at the same time
		fmt.Fprintf(w, "half\nwhole\n")
	})
	got := s.types(t, NewLogsCommand(), "web-c -f --all-containers --prefix -S proxy --max-log-requests 2")
	lines := strings.SplitAfter(got.Out, "\n")
	slices.Sort(lines)
	want := []string{"", "[pod/web-c/certs] the first half\n", "[pod/web-c/certs] whole\n", "[pod/web-c/envoy-2] the first half\n", "[pod/web-c/envoy-2] whole\n"}
	if got.Code != 0 || got.Err != "" || !slices.Equal(lines, want) {
		t.Errorf("got %+v", got)
	}
}

// answerStatus answers as an API server does that gives no log.
func answerStatus(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
}

func TestLogsWaitForAContainerThatIsFollowed(t *testing.T) {
	s := newShop(t)
	s.createPods(t)
	const waiting = "reading the log of container main of pod web-b: container is waiting to start"
	var asked atomic.Int32
	s.setAnswer(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			answerStatus(w, http.StatusBadRequest, "BadRequest", "container is waiting to start")
			return
		}
		fmt.Fprintln(w, "started")
	})
	request := "web-b/log?container=main&follow=true"
	s.wants(t, NewLogsCommand(), "web-b -c main -f", typed{
		Out: "started\n", Err: "container is waiting to start; waiting for up to 20s\n", Streams: []string{request, request},
	})
	for line, want := range map[string]typed{
		"web-b -c main":       {Err: waiting, Code: 3, Streams: []string{"web-b/log?container=main"}},
		"web-b -c main -f -p": {Err: waiting, Code: 3, Streams: []string{"web-b/log?container=main&follow=true&previous=true"}},
		"web-b -c main -f --pod-running-timeout 10ms": {Err: "container is waiting to start; waiting for up to 10ms\n" + waiting, Code: 3, Streams: []string{request}},
	} {
		t.Run(line, func(t *testing.T) {
			asked.Store(0)
			s.wants(t, NewLogsCommand(), line, want)
		})
	}
}

func TestLogsThatCannotBeRead(t *testing.T) {
	s := newShop(t)
	s.createPods(t)
	s.setAnswer(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "web-b") {
			answerStatus(w, http.StatusForbidden, "Forbidden", "no logs on Fridays")
			return
		}
		answerStreams(w, r)
	})
	const forbidden = "reading the log of container log of pod web-b: no logs on Fridays"
	s.wants(t, NewLogsCommand(), "-l app=web -S log --tail -1", typed{
		Err: "2 of 4 pods have no container of SidecarSet log\n" + forbidden, Code: 1, Streams: []string{"web-b/log?container=log"},
	})
	s.wants(t, NewLogsCommand(), "-l app=web -S log --tail -1 --ignore-errors", typed{
		Out: "log of log in web-c\nsecond line\n", Err: "2 of 4 pods have no container of SidecarSet log\n" + forbidden + "\n",
		Streams: []string{"web-b/log?container=log", "web-c/log?container=log"},
	})
}

func TestInterruptions(t *testing.T) {
	s := newShop(t)
	s.createPods(t)
	ctx, interrupt := context.WithCancel(t.Context())
	s.setAnswer(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "a line")
		_ = http.NewResponseController(w).Flush() // the client would miss it otherwise
		interrupt()
		<-r.Context().Done()
	})
	logs := NewLogsCommand()
	logs.SetContext(ctx)
	if got := s.types(t, logs, "web-b -c main -f"); got.Code != 0 || got.Err != "" {
		t.Errorf("a log that was followed: %+v", got)
	}
	ctx, interrupt = context.WithCancel(t.Context())
	s.setAnswer(t, func(w http.ResponseWriter, r *http.Request) { interrupt(); answerStreams(w, r) })
	exec := NewExecCommand()
	exec.SetIn(&endless{})
	exec.SetContext(ctx)
	want := "interrupted; the command in container main of pod web-b may still run"
	if got := s.types(t, exec, "web-b -c main -i -- cat"); got.Code != 3 || got.Err != want {
		t.Errorf("a command: %+v", got)
	}
}

// endless is an input that never ends.
type endless struct{}

func (*endless) Read(p []byte) (int, error) { return copy(p, "x"), nil }

func TestCopyLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	broken := errors.New("the connection is gone")
	for name, tc := range map[string]struct {
		log    io.Reader
		prefix string
		mixed  bool
		want   string
		err    error
	}{
		"as it is":                   {strings.NewReader("a\n\nb"), "", false, "a\n\nb", nil},
		"with a prefix":              {strings.NewReader("a\n\nb"), "[p] ", false, "[p] a\n[p] \n[p] b\n", nil},
		"a long line":                {strings.NewReader(long + "y\nz\n"), "[p] ", false, "[p] " + long + "y\n[p] z\n", nil},
		"a long line among others":   {strings.NewReader(long + "y\nz\n"), "[p] ", true, "[p] " + long + "\n[p] y\n[p] z\n", nil},
		"without a prefix":           {strings.NewReader(long + "y\nz\n"), "", true, long + "\ny\nz\n", nil},
		"what came before it failed": {io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), "[p] ", false, "[p] a\n[p] b\n", broken},
		"nothing":                    {strings.NewReader(""), "[p] ", false, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			err := (&lineWriter{w: &got, mixed: tc.mixed}).copyLines(tc.log, tc.prefix)
			if got.String() != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %.100q and %v, want %.100q and %v", got.String(), err, tc.want, tc.err)
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	s := newShop(t)
	s.createPods(t)
	s.CreateObjects(t, `{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: proxy}, spec: {selector: {matchLabels: {app: web}}, containers: [{name: envoy, image: x}]}}`)
	for _, tc := range []struct{ flag, args, typed, want string }{
		{"container", "clone/web", "", "main log"},
		{"container", "web-c", "envoy-", "envoy-1 envoy-2"},
		{"container", "clone/none", "", ""},
		{"container", "", "", ""},
		{"sidecarset", "clone/web", "pr", "proxy"},
		{"sidecarset", "clone/web", "x", ""},
		{"", "", "clone/w", "clone/web"},
		{"", "", "bc", "bcj/"},
	} {
		cmd := NewLogsCommand()
		cmd.SetContext(t.Context())
		complete := cmd.ValidArgsFunction
		if tc.flag != "" {
			complete, _ = cmd.GetFlagCompletionFunc(tc.flag)
		}
		got, _ := complete(cmd, strings.Fields(tc.args), tc.typed)
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], "\t")
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("--%s of %q after %q is completed by %q, want %s", tc.flag, tc.args, tc.typed, got, tc.want)
		}
	}
}
