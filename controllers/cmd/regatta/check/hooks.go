// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/certs"
)

// checkWebhooks checks whether the webhooks of the manager answer the API server.
func (i *inspector) checkWebhooks(ctx context.Context, of serving) {
	hooks, ok := i.findWebhooks(ctx)
	if !ok {
		return
	}
	services := map[string]bool{}
	bundles := map[string]bool{}
	for n := range hooks {
		w := &hooks[n]
		if !i.isOurs(w) {
			continue
		}
		if s := w.config.Service; s != nil {
			services[s.Namespace+"/"+s.Name] = true
		}
		// Usually all webhooks of a configuration have one bundle; each different bundle is checked once.
		if seen := w.configuration + string(w.config.CABundle); !bundles[seen] {
			bundles[seen] = true
			i.addFinding(i.judgeBundle(w.configuration, "webhooks "+w.name+" clientConfig.caBundle", w.config.CABundle, w.config.URL != nil, of))
		}
	}
	i.checkConfigurations(hooks)
	for service := range services {
		namespace, name, _ := strings.Cut(service, "/")
		ready, why, err := i.endpointsOf(ctx, namespace, name)
		object := nameOf("Service", namespace, name)
		switch {
		case err != nil:
			i.addError("webhooks", object, "endpoints", err)
		case why != "":
			i.addFinding(Finding{Blocks, "webhooks", object, "endpoints", "no manager answers the webhooks: " + why, "kubectl -n " + namespace + " rollout status deployment/kruise-controller-manager"})
		default:
			i.addFinding(Finding{Fine, "webhooks", object, "endpoints", fmt.Sprintf("%d are ready", ready), ""})
		}
	}
	i.tryWebhooks(ctx, hooks)
}

// checkConfigurations reports which configurations of the chart are missing.
func (i *inspector) checkConfigurations(hooks []webhook) {
	for _, object := range []string{"MutatingWebhookConfiguration " + certs.MutatingConfiguration, "ValidatingWebhookConfiguration " + certs.ValidatingConfiguration} {
		if !slices.ContainsFunc(hooks, func(w webhook) bool { return w.configuration == object }) {
			i.addFinding(Finding{Blocks, "webhooks", object, "webhooks", "it is not there or has no webhooks, so that writes of objects are neither checked nor completed", "helm upgrade " + i.Release + " charts/kruise"})
		}
	}
}

// samples are objects of the kinds that have webhooks, with the fewest fields that their schemas require. They are created as dry runs
// only.
//
//go:embed samples.yaml
var samples []byte

// tryWebhooks creates an object of each kind as a dry run. Any answer of a webhook is good: it may refuse an object with so few
// fields, or of a kind whose feature gate is off.
func (i *inspector) tryWebhooks(ctx context.Context, hooks []webhook) {
	objects, err := decodeObjects(samples)
	if err != nil {
		i.addError("webhooks", "samples", "read", err)
		return
	}
	answers := make([]int, len(objects))
	inParallel(len(objects), func(k int) { answers[k] = i.tryWebhooksOf(ctx, objects[k], hooks) })
	total := 0
	for _, n := range answers {
		total += n
	}
	if total > 0 {
		i.addFinding(Finding{Fine, "webhooks", "dry run", "create", fmt.Sprintf("%d webhooks of %d kinds answer", total, len(objects)), ""})
	}
}

// tryWebhooksOf creates an object as a dry run and returns how many webhooks answered.
func (i *inspector) tryWebhooksOf(ctx context.Context, o client.Object, hooks []webhook) int {
	gvk := o.GetObjectKind().GroupVersionKind()
	mapping, err := i.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		if !meta.IsNoMatchError(err) { // checkCRDs reports a missing CRD
			i.addError("webhooks", gvk.Kind, "discover", err)
		}
		return 0
	}
	p := plannedObject{o, mapping}
	if p.isNamespaced() {
		o.SetNamespace(i.Namespace)
	}
	asked := 0
	for n := range hooks {
		if w := &hooks[n]; i.isOurs(w) && w.isAskedAbout(p, space{labels: withName(nil, i.Namespace)}) {
			asked++
		}
	}
	if asked == 0 {
		return 0
	}
	object := "kind " + gvk.Kind
	err = i.askServer(ctx, func(ctx context.Context) error { return i.Create(ctx, o, client.DryRunAll) })
	switch {
	case err == nil || apierrors.IsAlreadyExists(err) || refusedByWebhook.MatchString(err.Error()):
		return asked
	case silentWebhook.MatchString(err.Error()):
		name := silentWebhook.FindStringSubmatch(err.Error())[1]
		i.addFinding(Finding{Blocks, "webhooks", object, "webhook " + name, "the API server gets no answer, so that it refuses writes of this kind: " + err.Error(),
			"kubectl -n " + i.Namespace + " logs deployment/kruise-controller-manager; with a network policy, see that the API server reaches port 9443 of the pods"})
	case apierrors.IsForbidden(err) && isOfRights(err):
		i.addFinding(Finding{Unknown, "webhooks", object, "create", "you may not create such objects in namespace " + i.Namespace + ", so that its webhooks were not asked", "ask a cluster administrator to run this"})
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		i.addFinding(Finding{Unknown, "webhooks", object, "create", "the API server has another schema than this program, so that webhooks that validate were not asked: " + err.Error(), "install the version of regatta that the chart is of"})
	case errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err):
		i.addFinding(Finding{Blocks, "webhooks", object, "create", fmt.Sprintf("a dry run had no answer in %s", i.Timeout), "give it longer with --timeout; kubectl -n " + i.Namespace + " top pod shows a manager without CPU"})
	default:
		i.addError("webhooks", object, "create", err)
	}
	return 0
}
