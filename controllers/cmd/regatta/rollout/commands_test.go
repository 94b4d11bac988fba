// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/test/terminal"
)

// jobs are objects with a field that pauses them and without revisions.
var jobs = map[string]string{
	"bcj": `
apiVersion: apps.kruise.io/v1beta1
kind: BroadcastJob
metadata: {namespace: default, name: web}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "web:1"}]}}}
`,
	"acj": `
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata: {namespace: default, name: web}
spec: {schedule: "* * * * *", template: {broadcastJobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "web:1"}]}}}}}}
`,
}

func TestPauseAndResume(t *testing.T) {
	s, whole := newShop(t), t
	for _, tc := range []struct{ word, text, output, resource string }{
		{"clone", samples["clone"], printed["clone"], "clonesets.apps.kruise.io"},
		{"asts", samples["asts"], printed["asts"], "statefulsets.apps.kruise.io"},
		{"ads", samples["ads"], printed["ads"], "daemonsets.apps.kruise.io"},
		{"sidecarset", samples["sidecarset"], printed["sidecarset"], "sidecarsets.apps.kruise.io"},
		{"deployment", samples["deployment"], printed["deployment"], "deployments.apps"},
		{"bcj", jobs["bcj"], "broadcastjob.apps.kruise.io/web", "broadcastjobs.apps.kruise.io"},
		{"acj", jobs["acj"], "advancedcronjob.apps.kruise.io/web", "advancedcronjobs.apps.kruise.io"},
	} {
		t.Run(tc.word, func(t *testing.T) {
			s.CreateObjects(whole, tc.text)
			field := ""
			for _, k := range pausableKinds() {
				if k.IsNamed(tc.word) {
					field = k.Paused.String()
				}
			}
			s.wants(t, "resume "+tc.word+"/web", 1, "", tc.resource+` "web" is not paused`)
			s.wants(t, "pause "+tc.word+"/web --dry-run=client", 0, tc.output+" paused (dry run)\n", "")
			s.wants(t, "pause "+tc.word+"/web --dry-run=server", 0, tc.output+" paused (server dry run)\n", "")
			s.wants(t, "resume "+tc.word+"/web", 1, "", tc.resource+` "web" is not paused`)
			s.wants(t, "pause "+tc.word+" web", 0, tc.output+" paused\n", "")
			if got := s.ReadField(t, tc.text, field); got != "true\n" {
				t.Errorf("%s is %s", field, got)
			}
			s.wants(t, "pause "+tc.word+"/web", 1, "", tc.resource+` "web" is already paused`)
			s.wants(t, "resume "+tc.word+"/web", 0, tc.output+" resumed\n", "")
			if got := s.ReadField(t, tc.text, field); got != "null\n" {
				t.Errorf("%s is %s", field, got)
			}
		})
	}
	t.Run("an error about one object does not keep the others from it", func(t *testing.T) {
		other := strings.Replace(samples["clone"], "name: web}", "name: other, labels: {tier: gold}}", 1)
		s.CreateObjects(whole, other)
		s.wants(t, "pause clone/other", 0, "cloneset.apps.kruise.io/other paused\n", "")
		s.wants(t, "pause clone --all", 1, "cloneset.apps.kruise.io/web paused\n", `clonesets.apps.kruise.io "other" is already paused`)
		s.wants(t, "resume clone -l tier=gold", 0, "cloneset.apps.kruise.io/other resumed\n", "")
		s.wants(t, "resume clone/web -o name", 0, "cloneset.apps.kruise.io/web\n", "")
	})
	t.Run("a subset of a UnitedDeployment", func(t *testing.T) {
		s.CreateObjects(t, strings.Replace(samples["clone"], "name: web}", "name: part, ownerReferences: [{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, name: all, uid: u, controller: true}]}", 1))
		want := "CloneSet part is of UnitedDeployment all, which would undo the change; change the UnitedDeployment instead"
		s.wants(t, "pause clone/part", 1, "", want)
		s.wants(t, "resume clone/part", 1, "", want)
	})
	t.Run("a set that only clients update", func(t *testing.T) {
		s.change(t, samples["asts"], "spec: {updateStrategy: {type: OnDelete, rollingUpdate: null}}")
		s.wants(t, "pause asts/web", 1, "", `statefulsets.apps.kruise.io "web" cannot be paused: spec.updateStrategy.type is OnDelete, so only clients update its pods`)
	})
	t.Run("a kind without the field", func(t *testing.T) {
		kinds := "want clone/NAME, asts/NAME, ads/NAME, sidecarset/NAME, bcj/NAME, acj/NAME or deployment/NAME"
		for word, name := range map[string]string{"ud": "UnitedDeployment", "statefulset": "StatefulSet of Kubernetes", "ds": "DaemonSet of Kubernetes"} {
			got := s.typed(t, "pause "+word+"/web")
			if got.Code != 2 || !strings.Contains(got.Err, name) || !strings.Contains(got.Err, kinds) {
				t.Errorf("%+v", got)
			}
		}
	})
	t.Run("wrong words", func(t *testing.T) {
		for words, code := range map[string]int{"pause": 2, "pause clone/a/b": 2, "pause clone/web --dry-run=yes": 2, "pause clone/none": 3, "pause clone/web --all": 2} {
			if got := s.typed(t, words); got.Code != code || got.Out != "" || got.Err == "" {
				t.Errorf("%s: %+v", words, got)
			}
		}
	})
}

func TestRestart(t *testing.T) {
	s, whole := newShop(t), t
	for _, word := range words() {
		if word == "sidecarset" {
			continue
		}
		t.Run(word, func(t *testing.T) {
			s.CreateObjects(whole, samples[word])
			s.wants(t, "restart "+word+"/web --dry-run=server", 0, printed[word]+" restarted (server dry run)\n", "")
			field := strings.Join(append(templatePath(word), "metadata", "annotations"), ".")
			if got := s.ReadField(t, samples[word], field); got != "note: \"1\"\n" {
				t.Errorf("after a dry run the annotations are %s", got)
			}
			began := time.Now().Truncate(time.Second)
			s.wants(t, "restart "+word+"/web", 0, printed[word]+" restarted\n", "")
			annotations, _, _ := unstructured.NestedStringMap(s.read(t, samples[word]).Object, append(templatePath(word), "metadata", "annotations")...)
			at, err := time.Parse(time.RFC3339, annotations[inplace.RestartedAtKey])
			if err != nil || at.Before(began) || at.After(time.Now()) || annotations["note"] != "1" {
				t.Errorf("%v: %v", annotations, err)
			}
		})
	}
	t.Run("after a time that is to come", func(t *testing.T) {
		field := "spec: {template: {metadata: {annotations: {" + inplace.RestartedAtKey + `: "%s"}}}}`
		s.change(t, samples["clone"], fmt.Sprintf(field, "2999-01-01T00:00:00Z"))
		s.wants(t, "restart clone/web", 0, "cloneset.apps.kruise.io/web restarted\n", "")
		if got := s.ReadField(t, samples["clone"], "spec.template.metadata.annotations"); got != inplace.RestartedAtKey+": \"2999-01-01T00:00:01Z\"\nnote: \"1\"\n" {
			t.Errorf("the annotations are %s", got)
		}
		s.change(t, samples["clone"], fmt.Sprintf(field, "9999-12-31T23:59:59Z"))
		s.wants(t, "restart clone/web", 1, "", "changing CloneSet web: annotation "+inplace.RestartedAtKey+" of the pod template is 9999-12-31T23:59:59Z, and no later time can be written; remove the annotation before the restart")
		s.change(t, samples["clone"], "spec: {template: {metadata: {annotations: {"+inplace.RestartedAtKey+": null}}}}")
	})
	t.Run("in place", func(t *testing.T) {
		for _, word := range []string{"clone", "asts", "ads"} {
			s.wants(t, "restart "+word+"/web --in-place", 0, printed[word]+" restarts in place\n", "follow the restart with: kubectl get crr -n default -w\n")
			if got := s.read(t, samples[word]).GetAnnotations()[kruise.RestartInPlaceKey]; got == "" {
				t.Error("nothing asks for the restart")
			}
		}
		s.wants(t, "restart deployment/web --in-place", 2, "", "--in-place is for a CloneSet, StatefulSet or DaemonSet, and not for Deployment of Kubernetes web")
	})
	refusals := []struct{ word, patch, want string }{
		{"clone", "spec: {updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}}", `spec.updateStrategy.rollingUpdate.podUpdatePolicy of clonesets.apps.kruise.io "web" is InPlaceOnly, so no pod may be recreated; add --in-place to restart the containers`},
		{"clone", "spec: {updateStrategy: {rollingUpdate: {paused: true}}}", `clonesets.apps.kruise.io "web" is paused; let it go on before the restart: regatta rollout resume clone/web`},
		{"deployment", "spec: {paused: true}", `deployments.apps "web" is paused; let it go on before the restart: regatta rollout resume deployment/web`},
		{"ud", "spec: {template: {cloneSetTemplate: {spec: {updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}}}}}", `spec.template.cloneSetTemplate.spec.updateStrategy.rollingUpdate.podUpdatePolicy of uniteddeployments.apps.kruise.io "web" is InPlaceOnly, so no pod may be recreated; restart each subset with --in-place`},
		{"ud", "spec: {template: {cloneSetTemplate: {spec: {updateStrategy: {rollingUpdate: {paused: true}}}}}}", `uniteddeployments.apps.kruise.io "web" is paused by spec.template.cloneSetTemplate.spec.updateStrategy.rollingUpdate.paused; set it to false before the restart`},
	}
	for _, tc := range refusals {
		t.Run("refuses "+tc.word+" "+tc.patch, func(t *testing.T) {
			s.change(t, samples[tc.word], tc.patch)
			s.wants(t, "restart "+tc.word+"/web", 1, "", tc.want)
		})
	}
	for _, words := range []string{"restart sidecarset/web", "restart clone/web sidecarsets.apps.kruise.io/web", "restart sidecarset web"} {
		s.wants(t, words, 1, "", "a SidecarSet has no pod template, so it cannot be restarted; to restart containers of a pod, create a ContainerRecreateRequest for the pod")
	}
	s.wants(t, "restart ads sidecarset", 3, "", "there is no Advanced DaemonSet sidecarset in namespace default")
}

func TestARestartIsLaterThanTheOneBefore(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 600e6, time.UTC)
	for present, want := range map[string]string{
		"": "2026-11-28T12:00:00Z", "yesterday": "2026-11-28T12:00:00Z", "2026-11-28T11:59:59Z": "2026-11-28T12:00:00Z",
		"2026-11-28T12:00:00Z": "2026-11-28T12:00:01Z", "2026-11-28T12:00:00.9Z": "2026-11-28T12:00:01Z",
		"2026-11-28T11:59:59.9Z":    "2026-11-28T12:00:00Z",
		"2026-11-28T14:00:00+02:00": "2026-11-28T14:00:01+02:00", "2026-11-28T13:00:00+02:00": "2026-11-28T12:00:00Z",
		"2027-01-01T00:00:00Z": "2027-01-01T00:00:01Z", "9999-12-31T23:59:59Z": "",
	} {
		got, err := chooseRestartTime(present, now)
		if got != want || (err == nil) != (want != "") || err != nil && exit.Code(err) != exit.Refused {
			t.Errorf("after %s it is %s, want %s: %v", present, got, want, err)
		}
	}
}

func TestApprove(t *testing.T) {
	s := newShop(t)
	s.createNamespace(t, "kruise-system")
	for _, word := range words() {
		kind := kindOf(t, word)
		if kind.IsNative() {
			continue
		}
		t.Run(word, func(t *testing.T) {
			s.createSample(t, word)
			name := s.record(t, word)
			update := name
			if word == "ads" {
				update = name[strings.LastIndexByte(name, '-')+1:]
			}
			s.setStatus(t, samples[word], statusOf("web-old", update, 4))
			s.wants(t, "approve "+word+"/web --revision web-other", 1, "", fmt.Sprintf("the newest revision of %s is %s, and not web-other; look at it before you approve it", kind.Describe("web"), name))
			s.wants(t, "approve "+word+"/web --dry-run=server", 0, printed[word]+" approved revision "+name+" (server dry run)\n", "")
			s.wants(t, "approve "+word+"/web --revision "+name, 0, printed[word]+" approved revision "+name+"\n", "")
			if got := s.read(t, samples[word]).GetAnnotations(); got[approvedRevisionKey] != name {
				t.Errorf("the annotations are %v", got)
			}
			s.wants(t, "approve "+word+"/web", 0, printed[word]+" unchanged\n", "")
			s.wants(t, "approve "+word+"/web --annotation example.com/approved", 0, printed[word]+" approved revision "+name+"\n", "")
		})
	}
	s.createSample(t, "clone")
	t.Run("waits until the manager has seen the change", func(t *testing.T) {
		var reads atomic.Int32
		s.BeforeRequests(t, func(r *http.Request) {
			if r.Method == http.MethodGet && reads.Add(1) == 3 {
				s.setStatus(t, samples["clone"], statusOf("web-old", "web-new", 4))
			}
		})
		s.setStatus(t, samples["clone"], strings.Replace(statusOf("web-older", "web-old", 4), "{", "{observedGeneration: 0, ", 1))
		s.wants(t, "approve clone/web", 0, "cloneset.apps.kruise.io/web approved revision web-new\n", "")
	})
	t.Run("fails if the manager does not see the change", func(t *testing.T) {
		s.change(t, samples["clone"], "spec: {replicas: 11}")
		got := s.TypeCommand(t, approveCommand(300*time.Millisecond), "clone/web")
		want := "CloneSet web: the manager has not seen the newest change yet, so the status names an older revision; try again, or see whether a manager runs"
		if got.Err != want || got.Code != exit.Refused || got.Out != "" || len(got.Requests) < 3 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("refuses a revision that comes meanwhile", func(t *testing.T) {
		s.setStatus(t, samples["clone"], statusOf("web-old", "web-1", 4))
		var once atomic.Bool
		s.BeforeRequests(t, func(r *http.Request) {
			if r.Method == http.MethodPatch && once.CompareAndSwap(false, true) {
				s.setStatus(t, samples["clone"], statusOf("web-old", "web-2", 4))
			}
		})
		s.wants(t, "approve clone/web", 1, "", "changing CloneSet web: the newest revision of CloneSet web is web-2, and not web-1; look at it before you approve it")
		once.Store(false)
		s.setStatus(t, samples["clone"], statusOf("web-old", "web-1", 4))
		reads := 0
		s.BeforeRequests(t, func(r *http.Request) {
			if r.Method == http.MethodPatch && once.CompareAndSwap(false, true) {
				s.change(t, samples["clone"], "spec: {replicas: 12}")
			}
			if reads++; reads == 4 {
				s.setStatus(t, samples["clone"], statusOf("web-old", "web-2", 4))
			}
		})
		s.wants(t, "approve clone/web", 1, "", "the newest revision of CloneSet web is web-2, and not web-1; look at it before you approve it")
	})
	t.Run("no revision", func(t *testing.T) {
		s.setStatus(t, samples["clone"], statusOf("", "", 0))
		s.wants(t, "approve clone/web", 1, "", "the status of CloneSet web names no revision")
	})
	for words, want := range map[string]string{
		"approve clone/web --annotation -": `--annotation is "-": `, "approve deployment/web": "this command is not for objects of kind Deployment of Kubernetes",
	} {
		if got := s.typed(t, words); got.Code != 2 || !strings.HasPrefix(got.Err, want) {
			t.Errorf("%s: %+v", words, got)
		}
	}
}

func TestHistory(t *testing.T) {
	s := newShop(t)
	s.createNamespace(t, "kruise-system")
	for _, word := range words() {
		t.Run(word, func(t *testing.T) {
			s.createSample(t, word)
			s.wants(t, "history "+word+"/web", 0, kindOf(t, word).Describe("web")+" has no revisions\n", "")
			s.change(t, samples[word], "metadata: {annotations: {kubernetes.io/change-cause: \"first\\n try\"}}")
			first := s.record(t, word)
			s.change(t, samples[word], "metadata: {annotations: {kubernetes.io/change-cause: null}}")
			s.setImage(t, word, "web:2")
			second := s.record(t, word)
			s.setStatus(t, samples[word], statusOf(first, second, 4))
			cause, status, field := "first try", "current", "spec.template"
			switch word {
			case "ud":
				cause = "<none>"
			case "deployment", "daemonset":
				status = "<none>"
			case "sidecarset":
				status, field = "<none>", "spec.containers"
			}
			width := len(first)
			want := fmt.Sprintf("REVISION   %-*s   AGE   STATUS    CHANGE-CAUSE\n1          %-*s   NS    %-7s   %s\n2          %-*s   NS    update    <none>\n%s was last written by rollout.test at TIME.\n", width, "NAME", width, first, status, cause, width, second, field)
			if status == "<none>" {
				want = strings.ReplaceAll(want, "STATUS    ", "STATUS   ")
				want = strings.ReplaceAll(want, "update    ", "update   ")
				want = strings.ReplaceAll(want, "<none>    first", "<none>   first")
			}
			got := s.typed(t, "history "+word+"/web")
			blank := regexp.MustCompile(` +`)
			out := regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:]+Z`).ReplaceAllString(got.Out, "TIME")
			out = regexp.MustCompile(` \d+s `).ReplaceAllString(out, " NS ")
			if diff := cmp.Diff(blank.ReplaceAllString(want, " "), blank.ReplaceAllString(out, " ")); diff != "" || got.Code != 0 || got.Err != "" {
				t.Errorf("(-want +got)\n%s%s", diff, got.Err)
			}
			one := s.typed(t, "history "+word+"/web --revision 1")
			if !strings.Contains(one.Out, "image: web:1\n") || strings.Contains(one.Out, "$patch") || strings.Contains(one.Out, "null") || strings.Contains(one.Out, "pod-template-hash") || one.Code != 0 {
				t.Errorf("%+v", one)
			}
			if two := s.typed(t, "history "+word+"/web -o json --revision "+second); !strings.HasPrefix(two.Out, "{\n    \"") || !strings.Contains(two.Out, `"image": "web:2"`) {
				t.Errorf("%+v", two)
			}
			list := s.typed(t, "history "+word+"/web -o yaml")
			items, _, _ := unstructured.NestedSlice(terminal.ParseObject(t, list.Out).Object, "items")
			if len(items) != 2 || strings.Contains(list.Out, "managedFields") {
				t.Errorf("%+v", list)
			}
			s.wants(t, "history "+word+"/web --revision 7", 1, "", fmt.Sprintf("%s has no revision 7; its revisions are 2 (%s), 1 (%s)", kindOf(t, word).Describe("web"), second, first))
			s.setStatus(t, samples[word], strings.Replace(statusOf(first, second, 4), "{", "{observedGeneration: 0, ", 1))
			if got := s.typed(t, "history "+word+"/web"); !strings.Contains(got.Out, "The controller has not seen the newest change of "+kindOf(t, word).Describe("web")+" yet.\n") {
				t.Errorf("%+v", got)
			}
		})
	}
	s.wants(t, "history clone/none", 3, "", "there is no CloneSet none in namespace default")
	if got := s.typed(t, "history clone/a clone/b"); got.Code != 2 || !strings.HasPrefix(got.Err, "name one object; it is regatta rollout history ") {
		t.Errorf("%+v", got)
	}
	if got := s.typed(t, "history clone/a -o wide"); got.Code != 2 {
		t.Errorf("%+v", got)
	}
}
