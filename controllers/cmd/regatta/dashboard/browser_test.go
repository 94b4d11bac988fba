// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/nearest"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/browser"
	"github.com/regatta-sh/regatta/test/terminal"
)

var api apiserver.Shared

func TestMain(m *testing.M) { api.RunTests(m) }

// hostile is a text that a browser would run if a page took it for markup.
const hostile = `<img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>`

// patience is how long a page may take to show a change on a machine that is busy.
const patience = time.Minute

// stubManagers answer as managers would about CloneSet web: they hold its pods until release is called.
type stubManagers struct {
	mu       sync.Mutex
	released bool
}

func (s *stubManagers) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = true
}

func (s *stubManagers) FetchExplanation(_ context.Context, q managers.Question) (explain.Reply, []error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Name != "web" && !strings.HasPrefix(q.Name, "web-") {
		return explain.Reply{}, nil, &managers.UndecidedError{Question: q}
	}
	hold := explain.Answer{
		Subject: decision.Subject{Group: q.Group, Kind: q.Kind, Namespace: q.Namespace, Name: q.Name}, Verdict: explain.Held, Reason: "ChangeFreeze",
		Message: "The year-end freeze is on. " + hostile, Rule: "freeze.yearend", Title: "No changes at the end of the year", Bundle: "freeze@0123456789ab",
		Place: "freeze.rego:7:1", Policies: "0123456789ab", Until: "2027-01-02T00:00:00Z", Decided: time.Now(),
	}
	if s.released {
		hold = explain.Answer{Subject: hold.Subject, Verdict: explain.UpToDate, Reason: "Complete", Message: "Nothing is left to do.", Policies: "0123456789ab", Decided: time.Now()}
	}
	reply := explain.Reply{Answer: hold}
	if q.Nearest && !s.released {
		reply.Answer.Nearest = &nearest.Result{Now: []nearest.Rule{{
			Rule: "freeze.yearend", Place: "freeze.rego:7:1", Wish: "hold", Conditions: []nearest.Condition{{Text: `workload.annotations["approved"] != "yes"`, Why: "it is missing"}},
		}}}
	}
	if q.Pods {
		reply.Answer.Why = []explain.ReasonCount{{Verdict: hold.Verdict, Reason: hold.Reason, Rule: hold.Rule, Message: hold.Message, Pod: "web-0", Pods: testPods}}
		for i := range testPods {
			pod := hold
			pod.Subject = decision.Subject{Kind: "Pod", Namespace: q.Namespace, Name: fmt.Sprint("web-", i)}
			pod.From, pod.To = "web-old", "web-new"
			if s.released {
				pod.From = pod.To
			}
			reply.Pods = append(reply.Pods, pod)
		}
	}
	return reply, nil, nil
}

func (s *stubManagers) FetchDecisions(context.Context, managers.Decisions) ([]decision.Record, []error, error) {
	return []decision.Record{{
		ID: 1, Origin: "manager-0", Time: time.Now().Truncate(time.Minute), Point: "rollout/plan", Subject: decision.Subject{Kind: "CloneSet", Namespace: "default", Name: "web"},
		Outcome: decision.Decided, Rules: []string{"freeze.yearend"}, Duration: 1500 * time.Microsecond,
		Output: &points.PlanOutput{Holds: []decision.Hold{{Rule: "freeze.yearend", Reason: "ChangeFreeze", Message: "The year-end freeze is on. " + hostile}}},
	}}, nil, nil
}

const testPods = 12

// createObjects creates a CloneSet that is held with its pods, a budget that a pod uses, a bundle in shadow and another CloneSet.
func createObjects(t *testing.T, c client.Client) *kruise.CloneSet {
	t.Helper()
	labels := map[string]string{"app": "web", "tier": "front"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:2"}}},
	}
	newSet := func(name string) *kruise.CloneSet {
		return &kruise.CloneSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       kruise.CloneSetSpec{Replicas: ptr.To(int32(testPods)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template},
		}
	}
	web, done := newSet("web"), newSet("done")
	done.Spec.Template.Labels = map[string]string{"app": "done"}
	for _, set := range []*kruise.CloneSet{web, done} {
		create(t, c, set)
	}
	done.Status = statusOf(done, testPods)
	web.Status = statusOf(web, 0)
	web.Status.Conditions = []kruise.CloneSetCondition{{Type: kruise.UpdateHeld, Status: corev1.ConditionTrue, Reason: "ChangeFreeze", Message: hostile}}
	updateStatus(t, c, done)
	updateStatus(t, c, web)
	create(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelTopologyZone: "zone-b"}}})
	for i := range testPods {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprint("web-", i), Labels: labels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(web, kruise.GroupVersion.WithKind("CloneSet"))},
			},
			Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
		}
		create(t, c, pod)
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		updateStatus(t, c, pod)
	}
	budget := &policyv1beta1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       policyv1beta1.PodUnavailableBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, MaxUnavailable: ptr.To(intstr.FromInt32(1))},
	}
	create(t, c, budget)
	budget.Status = policyv1beta1.PodUnavailableBudgetStatus{ObservedGeneration: 1, CurrentAvailable: 11, DesiredAvailable: 11, TotalReplicas: 12, DisruptedPods: map[string]metav1.Time{"web-3": metav1.Now()}}
	updateStatus(t, c, budget)
	bundle := &policyv1alpha1.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "freeze"}}
	bundle.Spec.Mode = policyv1alpha1.PolicyModeShadow
	bundle.Spec.Files = map[string]policyv1alpha1.FileText{"freeze.rego": "package freeze"}
	create(t, c, bundle)
	bundle.Status.Replicas = []policyv1alpha1.PolicyReplica{{Name: "manager-0", Shadow: &policyv1alpha1.PolicyShadow{
		Since: metav1.Now(), Compared: 70, Looser: 3, Differences: []policyv1alpha1.PolicyDifference{{Point: "rollout/plan", Kind: "Looser", Reason: "ChangeFreeze", Count: 3}},
	}}}
	updateStatus(t, c, bundle)
	return web
}

// statusOf is the status of a CloneSet some of whose pods are updated and available.
func statusOf(set *kruise.CloneSet, updated int32) kruise.CloneSetStatus {
	return kruise.CloneSetStatus{
		ObservedGeneration: set.Generation, Replicas: testPods, ReadyReplicas: testPods, AvailableReplicas: testPods, UpdatedReplicas: updated,
		UpdatedAvailableReplicas: updated, UpdatedReadyReplicas: updated, ExpectedUpdatedReplicas: testPods, UpdateRevision: "web-new", CurrentRevision: "web-old",
	}
}

func create(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func updateStatus(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// visitor is someone who looks at the page.
type visitor struct {
	*testing.T
	page *browser.Page
}

// newVisitor opens the page of a dashboard in a browser.
func newVisitor(t *testing.T, s *server, language string) *visitor {
	t.Helper()
	if err := browser.Install(t.Context(), os.Stderr); err != nil && os.Geteuid() != 0 {
		t.Skipf("only root can install a browser: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	page, err := browser.Open(t.Context(), language)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t, page}
	v.must(page.Navigate(s.pageURL()))
	return v
}

func (v *visitor) must(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

// waits until the element that a selector selects has a text.
func (v *visitor) waitFor(selector, text string) {
	v.Helper()
	v.must(v.page.WaitUntil(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", selector, text), patience))
}

func (v *visitor) run(expression string) {
	v.Helper()
	_, err := browser.Evaluate[bool](v.page, "("+expression+", true)")
	v.must(err)
}

// keepPicture writes pictures of the page, light and dark, to the folder that DASHBOARD_PICTURES names.
func (v *visitor) keepPicture(name string) {
	v.Helper()
	folder := os.Getenv("DASHBOARD_PICTURES")
	if folder == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		picture, err := v.page.Screenshot(scheme)
		v.must(err)
		v.must(os.WriteFile(filepath.Join(folder, name+"-"+scheme+".png"), picture, 0o600))
	}
}

func TestARolloutInABrowser(t *testing.T) {
	cluster := terminal.NewTerminal(t, &api)
	web := createObjects(t, cluster)
	access, err := target.NewCluster().WithoutTimeout().OpenClients(managers.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	c, stub := newCollector(access, "default"), &stubManagers{}
	c.asker = stub
	s := serveForTest(t, c)
	v := newVisitor(t, s, "en")

	t.Log("the list has what needs attention first")
	v.waitFor("tbody tr:first-child", "held")
	v.waitFor("tbody tr:nth-child(2)", "complete")
	v.waitFor("tbody tr:first-child .notes", "<script>")
	v.keepPicture("workloads")

	t.Log("its page shows each pod, and why it is held")
	v.run(`document.querySelector("tbody tr:first-child a").click()`)
	v.waitFor("h1", "web")
	v.waitFor(".legend", "12 held")
	v.waitFor(".verdict", "The year-end freeze is on.")
	v.waitFor("#progress", "0 of 12 pods updated")
	v.waitFor("main", "freeze.rego:7:1")
	v.waitFor("main", "regatta rollout pause clone/web -n default")

	t.Log("the keyboard chooses a pod")
	v.run(`document.querySelector(".squares button").focus()`)
	v.must(v.page.Press(kb.ArrowRight))
	v.must(v.page.Press(kb.Enter))
	v.waitFor(".detail h3", "default/web-1")
	v.waitFor(".detail", "zone-b")

	t.Log("the managers say what would change it")
	v.run(`document.querySelector(".detail button.ask").click()`)
	v.waitFor(".detail", `workload.annotations["approved"] != "yes"`)
	v.keepPicture("rollout-held")

	t.Log("pods are grouped by a label")
	v.run(`(() => { const s = document.querySelector("section select"); s.value = "label:tier"; s.dispatchEvent(new Event("change")); })()`)
	v.waitFor(".group h3", "front (0/12)")

	t.Log("the page follows the rollout")
	stub.release()
	web.Status = statusOf(web, testPods)
	updateStatus(t, cluster, web)
	v.waitFor("#progress", "12 of 12 pods updated")
	v.waitFor(".legend", "12 up to date")
	v.must(v.page.WaitUntil(`document.querySelector("svg.timeline path.timeline-updated")`, patience))
	v.keepPicture("rollout-complete")

	t.Log("a workload that is deleted is gone")
	if err := cluster.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	v.waitFor("main", "This workload was deleted.")
	v.checkConsole()
}

// checkConsole reports what a user would see in the console of the browser.
func (v *visitor) checkConsole() {
	v.Helper()
	if problems := v.page.Problems(); len(problems) > 0 {
		v.Errorf("the console of the browser has:\n%s", strings.Join(problems, "\n"))
	}
	title, err := browser.Evaluate[string](v.page, "document.title")
	v.must(err)
	if title != "Regatta" {
		v.Errorf("a text of the cluster was run: the title of the page is %q", title)
	}
}

func TestTheOtherPagesInChinese(t *testing.T) {
	cluster := terminal.NewTerminal(t, &api)
	createObjects(t, cluster)
	access, err := target.NewCluster().WithoutTimeout().OpenClients(managers.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector(access, "")
	c.asker = &stubManagers{}
	s := serveForTest(t, c)
	v := newVisitor(t, s, "zh-CN")
	v.waitFor("nav", "工作负载")
	v.waitFor("tbody tr:first-child", "已暂缓")
	v.keepPicture("workloads-zh")

	pages := []struct {
		name  string
		texts []string
	}{
		{"decisions", []string{"rollout/plan", "ChangeFreeze", "<script>", "1.5 ms"}},
		{"policies", []string{"freeze", "影子：比较了 70 个决策", "3 个更宽松", "regatta policy promote freeze", "目前会拒绝"}},
		{"budgets", []string{"web-3 (删除或驱逐", "11"}},
	}
	for _, p := range pages {
		v.run(fmt.Sprintf("location.hash = %q", "#/"+p.name))
		for _, text := range p.texts {
			v.waitFor("main", text)
		}
		v.keepPicture(p.name + "-zh")
	}

	t.Log("another language and the dark theme")
	v.run(`(() => { const s = document.querySelector("#language"); s.value = "en"; s.dispatchEvent(new Event("change")); })()`)
	v.waitFor("nav", "Workloads")
	v.waitFor("main", "deletion or eviction")
	v.run(`(() => { const s = document.querySelector("#theme"); s.value = "dark"; s.dispatchEvent(new Event("change")); })()`)
	v.must(v.page.WaitUntil(`getComputedStyle(document.body).backgroundColor === "rgb(13, 17, 23)"`, patience))

	t.Log("an address of nothing says so")
	v.run(`location.hash = "#/workloads/clonesets.apps.kruise.io/default/missing"`)
	v.waitFor("main", "there is no CloneSet missing")
	v.run(`location.hash = "#/workloads/secrets/default/missing"`)
	v.waitFor("main", `"secrets" is no resource that has rollouts`)
}

func TestTheCommandServesUntilItIsInterrupted(t *testing.T) {
	terminal.NewTerminal(t, &api)
	ctx, interrupt := context.WithCancel(t.Context())
	cmd := NewCommand()
	out := &lines{seen: make(chan string, 10)}
	cmd.SetOut(out)
	cmd.SetArgs([]string{"--port", "0", "-A"})
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	select {
	case text := <-out.seen:
		if !regexp.MustCompile(`http://127\.0\.0\.1:\d+/\w{20,}/\n`).MatchString(text) {
			t.Errorf("it prints %q", text)
		}
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(patience):
		t.Fatal("it prints nothing")
	}
	interrupt()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
}

// lines hands over what is written to it.
type lines struct{ seen chan string }

func (l *lines) Write(p []byte) (int, error) {
	l.seen <- string(p)
	return len(p), nil
}

func TestFlagsThatAreRefused(t *testing.T) {
	terminal.NewTerminal(t, &api)
	for _, tc := range []struct{ args, want string }{
		{"--address 0.0.0.0", "--address"}, {"--address example.com", "--address"}, {"--port 70000", "--port"}, {"--port -1", "--port"},
	} {
		cmd := NewCommand()
		cmd.SetArgs(strings.Fields(tc.args))
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.args, err)
		}
	}
}
