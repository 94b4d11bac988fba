// SPDX-License-Identifier: Apache-2.0

// Package tenants tries whether the manager stays within the memory limit of the chart while many namespaces have
// policies of their own, it remembers as many decisions as it may, and a bundle is at the gate: in a container of
// a real node.
package tenants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/manager"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/install"
)

// Options say how much is tried.
type Options struct {
	Name       string            // of the cluster, which is removed afterwards
	Programs   map[string]string // of install.Build
	Namespaces int               // each with a PolicyBundle
	Decisions  int               // that are asked for while the PolicyBundles exist
	Clients    int               // how many ask at a time
	Out        io.Writer
}

const (
	system = "kruise-system"
	// prefix begins the names of namespaces.
	prefix = "tenant-"
	// large is how many bytes of annotations an object has that a decision is about, so that the decisions that
	// are remembered come to their bound in bytes.
	large = 7 << 10
	// patience is how long a bundle of the platform may be at the gate.
	patience = 5 * time.Minute
)

// Run brings up a cluster of one real node, tries, and takes it down.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	root, err := install.Root()
	if err != nil {
		return nil, err
	}
	cluster, err := local.Up(ctx, local.Options{Name: o.Name, Real: 1, Out: o.Out})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, local.Down(context.WithoutCancel(ctx), o.Name, o.Out)) }()
	if _, err := install.Install(ctx, install.Options{Root: root, Programs: o.Programs, Cluster: cluster, Out: o.Out}); err != nil {
		return nil, err
	}
	config, err := cluster.RESTConfig("admin")
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	scheme, err := manager.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	stats, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	t := &trial{Options: o, Client: c, memory: newGauge(stats)}
	return t.runParts(ctx)
}

// trial is one run.
type trial struct {
	Options
	client.Client
	memory *gauge
	report Report
}

func (t *trial) runParts(ctx context.Context) (*Report, error) {
	t.report.Options = t.Options
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go t.memory.watchMemory(watching)
	for _, part := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"making namespaces with a PolicyBundle each", t.makeNamespaces},
		{"waiting until all of them are enforced", t.waitEnforced},
		{"asking for decisions", t.askForDecisions},
		{"changing the policies of the platform", t.changePlatform},
		{"asking for decisions again", t.askForDecisions},
	} {
		fmt.Fprintf(t.Out, "%s\n", part.what)
		start := time.Now()
		if err := part.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", part.what, err)
		}
		peak, err := t.memory.takePeak()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.what, err)
		}
		t.report.Parts = append(t.report.Parts, Part{What: part.what, Took: time.Since(start), Peak: peak})
	}
	return &t.report, t.readManagers(ctx)
}

// makeNamespaces makes the namespaces, and in each a PolicyBundle and an object that decisions are about.
func (t *trial) makeNamespaces(ctx context.Context) error {
	return t.doEach(ctx, t.Namespaces, func(i int) error {
		name := fmt.Sprint(prefix, i)
		bundle := &policy.PolicyBundle{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "incident"}}
		bundle.Spec.Files = map[string]policy.FileText{"incident.rego": policy.FileText(fmt.Sprintf(`package extend.protection.incident%d

deny contains {"reason": "IncidentOpen", "message": "An incident is open."} if {
	input.object.annotations["shop.example/incident"] == "%d"
}
`, i, i))}
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: "web", Labels: map[string]string{"policy.kruise.io/delete-protection": "Always"},
			Annotations: map[string]string{"shop.example/notes": strings.Repeat("x", large)},
		}}
		service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, bundle, service} {
			if err := t.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
				return fmt.Errorf("making %T %s in %s: %w", object, object.GetName(), name, err)
			}
		}
		return nil
	})
}

// waitEnforced waits until all PolicyBundles are Ready.
func (t *trial) waitEnforced(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	for {
		list := &policy.PolicyBundleList{}
		if err := t.List(ctx, list); err != nil {
			return fmt.Errorf("listing the PolicyBundles: %w", err)
		}
		ready, last := 0, ""
		for i := range list.Items {
			condition := meta.FindStatusCondition(list.Items[i].Status.Conditions, "Ready")
			if condition != nil && condition.Status == metav1.ConditionTrue {
				ready++
			} else if condition != nil {
				last = condition.Message
			}
		}
		if ready >= t.Namespaces {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %d of %d are Ready; one says %q", context.Cause(ctx), ready, t.Namespaces, last)
		case <-time.After(2 * time.Second):
		}
	}
}

// askForDecisions has deletions decided that the label of the objects forbids, by dry runs, in one namespace after the other.
func (t *trial) askForDecisions(ctx context.Context) error {
	var refused, undecided, unanswered atomic.Int64
	err := t.doEach(ctx, t.Decisions, func(i int) error {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint(prefix, i*t.Namespaces/t.Decisions), Name: "web"}}
		err := t.Delete(ctx, service, client.DryRunAll)
		switch {
		case err == nil:
			return fmt.Errorf("the deletion of a protected object in %s was let go", service.Namespace)
		case strings.Contains(err.Error(), "No policy could decide"):
			undecided.Add(1)
		case strings.Contains(err.Error(), "denied the request"):
			refused.Add(1)
		case apierrors.IsInternalError(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err):
			unanswered.Add(1)
		default:
			return fmt.Errorf("deleting by a dry run: %w", err)
		}
		return nil
	})
	t.report.Refused += refused.Load()
	t.report.Undecided += undecided.Load()
	t.report.Unanswered += unanswered.Load()
	return err
}

// changePlatform has a bundle of the platform go through the gate, with which every namespace's policies are compiled anew.
func (t *trial) changePlatform(ctx context.Context) error {
	bundle := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "freeze"}}
	bundle.Spec.Files = map[string]policy.FileText{"freeze.rego": `package extend.protection.freeze

deny contains {"reason": "Frozen", "message": "Nothing is deleted today."} if {
	input.object.annotations["shop.example/notes"]
}
`}
	if err := t.Create(ctx, bundle); err != nil {
		return fmt.Errorf("making the bundle: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if err := t.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return fmt.Errorf("reading the bundle: %w", err)
		}
		if meta.IsStatusConditionTrue(bundle.Status.Conditions, "Ready") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: the bundle is not Ready: %v", context.Cause(ctx), bundle.Status.Conditions)
		case <-time.After(time.Second):
		}
	}
}

// readManagers reads how often containers of managers ended, and their limit.
func (t *trial) readManagers(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := t.List(ctx, pods, client.InNamespace(system), client.MatchingLabels{"control-plane": "controller-manager"}); err != nil {
		return fmt.Errorf("listing the managers: %w", err)
	}
	for i := range pods.Items {
		for _, container := range pods.Items[i].Spec.Containers {
			t.report.Limit = max(t.report.Limit, container.Resources.Limits.Memory().Value())
		}
		for _, status := range pods.Items[i].Status.ContainerStatuses {
			t.report.Restarts += int(status.RestartCount)
		}
	}
	return nil
}

// doEach does something n times, by the clients at once, until one fails.
func (t *trial) doEach(ctx context.Context, n int, do func(i int) error) error {
	var next atomic.Int64
	var all sync.WaitGroup
	failed := make(chan error, t.Clients)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range t.Clients {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					failed <- err
					cancel()
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed // nil if nothing failed
}
