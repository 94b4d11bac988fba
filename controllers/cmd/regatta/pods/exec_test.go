// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// The annotations of pods with the containers of SidecarSets: log has one container; proxy has the pair envoy, of which the second one works,
// and a native sidecar.
const (
	logMark   = `kruise.io/sidecarset-injected-list: log, kruise.io/sidecarset-hash: '{"log":{"updateTimestamp":"2026-11-29T00:00:00Z","hash":"x","sidecarSetName":"log","sidecarList":["log"]}}'`
	proxyMark = `kruise.io/sidecarset-injected-list: "log,proxy", kruise.io/sidecarset-working-hotupgrade-container: '{"envoy":"envoy-2"}',
		kruise.io/sidecarset-hash: '{"log":{"updateTimestamp":"2026-11-29T00:00:00Z","hash":"x","sidecarSetName":"log","sidecarList":["log"]},
		"proxy":{"updateTimestamp":"2026-11-29T00:00:00Z","hash":"x","sidecarSetName":"proxy","sidecarList":["certs","envoy"]}}'`
	proxyContainers = `initContainers: [{name: certs, image: x, restartPolicy: Always}],
		containers: [{name: main, image: x}, {name: envoy-1, image: x}, {name: envoy-2, image: x}, {name: log, image: x}]`
)

// createPods makes the pods of CloneSet web: a runs and is not ready, b is ready and has SidecarSet log, c is ready, has run for a
// shorter time, and has SidecarSets log and proxy, d waits for a node.
func (s *shop) createPods(t *testing.T) {
	t.Helper()
	s.CreateObjects(t, cloneSet("web"))
	s.createPod(t, "web-a", "web", "metadata: {annotations: {kubectl.kubernetes.io/default-container: log}}", running)
	s.createPod(t, "web-b", "web", "metadata: {annotations: {"+logMark+"}}", readySince(0))
	s.createPod(t, "web-c", "web", "metadata: {annotations: {"+proxyMark+"}}\nspec: {"+proxyContainers+"}", readySince(1))
	s.createPod(t, "web-d", "web", "spec: {nodeName: null}", corev1.PodStatus{Phase: corev1.PodPending})
}

func TestExecChoices(t *testing.T) {
	s := newShop(t)
	s.createPods(t)
	const query = "&stderr=true&stdout=true"
	defaulted := "Defaulted container \"main\" out of: main, log\n"
	for line, want := range map[string]typed{
		"clone/web -- date":                 {Out: "ran date\n", Err: defaulted, Streams: []string{"web-b/exec?command=date&container=main" + query}},
		"clone/web -q -- ls -l":             {Out: "ran ls -l\n", Streams: []string{"web-b/exec?command=ls&command=-l&container=main" + query}},
		"clone/web -c log -- date":          {Out: "ran date\n", Streams: []string{"web-b/exec?command=date&container=log" + query}},
		"clone/web -S log -- date":          {Out: "ran date\n", Streams: []string{"web-b/exec?command=date&container=log" + query}},
		"clone/web -S proxy -- date":        {Out: "ran date\n", Err: "Defaulted container \"envoy-2\" out of: envoy-2, certs\n", Streams: []string{"web-c/exec?command=date&container=envoy-2" + query}},
		"clone/web -S proxy -q -- date":     {Out: "ran date\n", Streams: []string{"web-c/exec?command=date&container=envoy-2" + query}},
		"clone/web -S proxy -c envoy -- id": {Out: "ran id\n", Streams: []string{"web-c/exec?command=id&container=envoy-2" + query}},
		"clone/web -S proxy -c certs -- id": {Out: "ran id\n", Streams: []string{"web-c/exec?command=id&container=certs" + query}},
		"web-a -- date":                     {Out: "ran date\n", Streams: []string{"web-a/exec?command=date&container=log" + query}},
		"pod/web-a -c main -- date":         {Out: "ran date\n", Streams: []string{"web-a/exec?command=date&container=main" + query}},
		"clone/web -c main -- fail":         {Out: "ran fail\n", Err: "it failed\nthe command in container main of pod web-b ended with 7", Code: 7, Streams: []string{"web-b/exec?command=fail&container=main" + query}},

		"clone/web -c envoy -- date":                 {Err: "container envoy is not valid for pod web-b out of: main, log", Code: 1},
		"clone/web -S proxy -c envoy-1 -- date":      {Err: "container envoy-1 is not of SidecarSet proxy in pod web-c, which has envoy-2, certs", Code: 1},
		"clone/web -S other -- date":                 {Err: "none of the 4 pods has a container of SidecarSet other; pod web-a has containers of no SidecarSet", Code: 1},
		"web-b -S proxy -- date":                     {Err: "pod web-b has no container of SidecarSet proxy; it has containers of log", Code: 1},
		"clone/none -- date":                         {Err: "there is no CloneSet none in namespace default", Code: 3},
		"none -- date":                               {Err: "there is no pod none in namespace default", Code: 3},
		"clone/web":                                  {Err: "there is no command; write it after --", Code: 2},
		"-- date":                                    {Err: "name a pod, or a workload as KIND/NAME", Code: 2},
		"clone/web date":                             {Err: "write the command after --, such as regatta exec clone/web -- date", Code: 2},
		"clone web -- date":                          {Err: "name one pod or workload before --, not 2", Code: 2},
		"sidecarset/log -- date":                     {Err: "this command is not for objects of kind SidecarSet; want " + edit.JoinArguments(kindsWithPods(), ", ", " or ") + ", or POD", Code: 2},
		"pod/ -- date":                               {Err: `"pod/" is not the name of an object; want ` + edit.JoinArguments(kindsWithPods(), ", ", " or ") + ", or POD", Code: 2},
		"clone/web --pod-running-timeout 0s -- date": {Err: "--pod-running-timeout is 0s; want more than 0", Code: 2},
		"clone/web --interactive -- date":            {Err: "unknown flag: --interactive; regatta exec --help lists them", Code: 2},
	} {
		t.Run(line, func(t *testing.T) { s.wants(t, NewExecCommand(), line, want) })
	}
}

func TestExecEachKind(t *testing.T) {
	s := newShop(t)
	all := workloads("web")
	all["bcj"] = `{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob, metadata: {namespace: default, name: web},
		spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}}}`
	for word, text := range all {
		t.Run(word, func(t *testing.T) {
			s.CreateObjects(t, text)
			const container = "spec: {containers: [{name: main, image: x}]}"
			fields := container
			if word == "bcj" {
				fields += "\nmetadata: {labels: {app: null, broadcastjob-controller-uid: " + string(s.ReadObject(t, text).GetUID()) + "}}"
			}
			s.createPod(t, "one", "web", fields, running)
			s.createPod(t, "other", "other", container, readySince(0))
			s.wants(t, NewExecCommand(), word+"/web -- id", typed{Out: "ran id\n", Streams: []string{"one/exec?command=id&container=main&stderr=true&stdout=true"}})
		})
	}
}

func TestExecPassesTheInput(t *testing.T) {
	s := newShop(t)
	s.createPods(t)
	for flags, want := range map[string]typed{
		"-i":  {Out: "ran catall the input\n"},
		"-it": {Out: "ran catall the input\n", Err: "the command gets no terminal: it needs -i, and a terminal as the standard input\n"},
	} {
		t.Run(flags, func(t *testing.T) {
			want.Streams = []string{"web-b/exec?command=cat&container=main&stderr=true&stdin=true&stdout=true"}
			cmd := NewExecCommand()
			cmd.SetIn(strings.NewReader("all the input"))
			s.wants(t, cmd, "clone/web -c main "+flags+" -- cat", want)
		})
	}
	s.wants(t, NewExecCommand(), "clone/web -c main -t -- cat", typed{
		Out: "ran cat\n", Err: "the command gets no terminal: it needs -i, and a terminal as the standard input\n",
		Streams: []string{"web-b/exec?command=cat&container=main&stderr=true&stdout=true"},
	})
}

func TestExecIsNotRunWhereNoneCanBe(t *testing.T) {
	s := newShop(t)
	s.CreateObjects(t, cloneSet("web"), cloneSet("empty"))
	s.createPod(t, "web-a", "web", "", corev1.PodStatus{Phase: corev1.PodFailed})
	s.wants(t, NewExecCommand(), "clone/web -- date", typed{Err: "the containers of pod web-a have ended; its phase is Failed", Code: 1})
	s.wants(t, NewExecCommand(), "clone/empty --pod-running-timeout 100ms -- date",
		typed{Err: "CloneSet empty has no pod; waiting for one for up to 100ms\nCloneSet empty has no pod after 100ms", Code: 1})
	s.createPod(t, "broken", "web", `metadata: {annotations: {kruise.io/sidecarset-hash: "no JSON"}}`, running)
	got := s.types(t, NewExecCommand(), "broken -S log -- date")
	if got.Code != 3 || !strings.HasPrefix(got.Err, "reading pod broken: ") || !strings.Contains(got.Err, "kruise.io/sidecarset-hash") {
		t.Errorf("got %+v", got)
	}
	// Two SidecarSets have a container envoy, one of them as a pair.
	s.createPod(t, "both", "web", `metadata: {annotations: {`+proxyMark+`}}
spec: {containers: [{name: envoy, image: x, env: [{name: IS_INJECTED, value: "true"}]}, {name: envoy-1, image: x}, {name: envoy-2, image: x}]}`, running)
	s.wants(t, NewExecCommand(), "both -S proxy -- date",
		typed{Err: "pod both has container envoy and, of another SidecarSet, the pair of envoy-2; name the container with -c and leave out -S", Code: 1})
	s.createPod(t, "gone", "web", `metadata: {annotations: {`+proxyMark+`}}`, running)
	s.wants(t, NewExecCommand(), "gone -S proxy -- date", typed{Err: "pod gone has none of the containers that it records of SidecarSet proxy", Code: 1})
}

func TestExecWaitsForThePod(t *testing.T) {
	s := newShop(t)
	s.CreateObjects(t, cloneSet("web"))
	s.BeforeRequests(t, func(r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			s.createPod(t, "late", "web", "spec: {containers: [{name: main, image: x}]}", running)
		}
	})
	s.wants(t, NewExecCommand(), "clone/web -- date", typed{
		Out: "ran date\n", Err: "CloneSet web has no pod; waiting for one for up to 1m0s\n",
		Streams: []string{"late/exec?command=date&container=main&stderr=true&stdout=true"},
	})
}

func TestExecFallsBackAndTellsOfRefusals(t *testing.T) {
	s := newShop(t)
	s.createPods(t)
	s.setAnswer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no commands on Fridays","reason":"Forbidden","code":403}`))
	})
	request := "web-b/exec?command=date&container=main&stderr=true&stdout=true"
	s.wants(t, NewExecCommand(), "clone/web -c main -- date", typed{
		Err: "running the command in container main of pod web-b: unable to upgrade connection: no commands on Fridays", Code: 1, Streams: []string{request, request},
	})
}
