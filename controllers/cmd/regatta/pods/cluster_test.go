// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/terminal"
)

var api apiserver.Shared

func TestMain(m *testing.M) { api.RunTests(m) }

// shop is a user who types commands, and a cluster whose nodes are the test.
type shop struct {
	*terminal.Terminal

	mu       sync.Mutex
	requests []string
	// answer answers a request for the log of a container, or runs a command in it.
	answer http.HandlerFunc
}

// newShop makes a cluster. Requests for logs and commands go to the test in place of the API server, which would pass
// them to the kubelet of a node.
func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{Terminal: terminal.NewTerminal(t, &api), answer: answerStreams}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(host)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/log") && !strings.HasSuffix(r.URL.Path, "/exec") {
			proxy.ServeHTTP(w, r)
			return
		}
		query := r.URL.Query().Encode() // sorted
		s.mu.Lock()
		s.requests = append(s.requests, strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/default/pods/")+"?"+query)
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q}}], "+
		"contexts: [{name: c, context: {cluster: c, namespace: default}}], current-context: c}", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	return s
}

// typed is what came of a command, with its requests for logs and commands.
type typed struct {
	Out, Err string
	Code     int
	Streams  []string
}

// types runs a command with the words of a line.
func (s *shop) types(t *testing.T, command *cobra.Command, line string) typed {
	t.Helper()
	s.mu.Lock()
	s.requests = nil
	s.mu.Unlock()
	got := s.TypeCommand(t, command, strings.Fields(line)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	return typed{got.Out, got.Err, got.Code, s.requests}
}

// wants runs a command and compares what comes of it.
func (s *shop) wants(t *testing.T, command *cobra.Command, line string, want typed) {
	t.Helper()
	if diff := cmp.Diff(want, s.types(t, command, line)); diff != "" {
		t.Errorf("%s %s: (-want +got)\n%s", command.Name(), line, diff)
	}
}

// setAnswer has streams answered by a function until the test ends.
func (s *shop) setAnswer(t *testing.T, answer http.HandlerFunc) {
	set := func(answer http.HandlerFunc) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answer = answer
	}
	set(answer)
	t.Cleanup(func() { set(answerStreams) })
}

// answerStreams answers as a node does: a log tells whose it is, and a command prints its words and its input. The
// command fail ends with 7.
func answerStreams(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if strings.HasSuffix(r.URL.Path, "/log") {
		name := strings.Split(r.URL.Path, "/")[6]
		fmt.Fprintf(w, "log of %s in %s\nsecond line\n", query.Get("container"), name)
		return
	}
	input := wsstream.IgnoreChannel
	if query.Get("stdin") == "true" {
		input = wsstream.ReadChannel
	}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{"v5.channel.k8s.io": {
		Binary: true, Channels: []wsstream.ChannelType{input, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.ReadChannel},
	}})
	_, streams, err := conn.Open(w, r)
	if err != nil {
		return // the client sees the end of the connection
	}
	defer conn.Close()
	typed := []byte{}
	if query.Get("stdin") == "true" && query.Get("tty") != "true" {
		if typed, err = io.ReadAll(streams[0]); err != nil {
			return
		}
	}
	size := ""
	if query.Get("tty") == "true" {
		var to struct{ Width, Height int }
		if json.NewDecoder(streams[4]).Decode(&to) != nil {
			return
		}
		size = fmt.Sprintf(" on %dx%d", to.Width, to.Height)
	}
	fmt.Fprintf(streams[1], "ran %s%s%s\n", strings.Join(query["command"], " "), size, typed)
	status := metav1.Status{Status: metav1.StatusSuccess}
	if query.Get("command") == "fail" {
		fmt.Fprintln(streams[2], "it failed")
		status = metav1.Status{Status: metav1.StatusFailure, Reason: "NonZeroExitCode",
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: "7"}}}}
	}
	_ = json.NewEncoder(streams[3]).Encode(status) // the client sees the end of the connection
}

// workload is an object whose pods have the label app with its name.
func workload(version, kind, name string) string {
	return fmt.Sprintf(`
apiVersion: %[1]s
kind: %[2]s
metadata: {namespace: default, name: %[3]s, labels: {app: %[3]s, team: a}}
spec:
  selector: {matchLabels: {app: %[3]s}}
  template:
    metadata: {labels: {app: %[3]s}}
    spec: {containers: [{name: main, image: "web:1", ports: [{containerPort: 8080, name: http}]}]}
`, version, kind, name)
}

const kruiseVersion = "apps.kruise.io/v1beta1"

func cloneSet(name string) string { return workload(kruiseVersion, "CloneSet", name) }

// change merges fields into an object that is written as YAML.
func change(t *testing.T, text, fields string) string {
	t.Helper()
	object, more := terminal.ParseObject(t, text), terminal.ParseObject(t, "apiVersion: v1\nkind: X\n"+fields)
	delete(more.Object, "apiVersion")
	delete(more.Object, "kind")
	mergeFields(object.Object, more.Object)
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func mergeFields(into, from map[string]any) {
	for key, value := range from {
		inner, isObject := value.(map[string]any)
		own, hasObject := into[key].(map[string]any)
		if isObject && hasObject {
			mergeFields(own, inner)
			continue
		}
		into[key] = value
	}
}

// createPod makes a pod of an app with a status.
func (s *shop) createPod(t *testing.T, name, app, fields string, status corev1.PodStatus) {
	t.Helper()
	text := change(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {namespace: default, name: %s, labels: {app: %s}},
		spec: {nodeName: node, terminationGracePeriodSeconds: 0, containers: [{name: main, image: "web:1"}, {name: log, image: "log:1"}]}}`, name, app), fields)
	s.CreateObjects(t, text)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status = status
	if err := s.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// running is the status of a pod that runs and is not ready.
var running = corev1.PodStatus{Phase: corev1.PodRunning}

// readySince is the status of a pod that is ready since some minutes after an hour.
func readySince(minutes int) corev1.PodStatus {
	at := metav1.NewTime(time.Date(2026, 11, 29, 0, minutes, 0, 0, time.UTC))
	return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at}}}
}
