// SPDX-License-Identifier: Apache-2.0

package support

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/check"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
)

// collector reads a cluster into an archive. What it cannot read is left out.
type collector struct {
	client.Client
	Options
	core    kubernetes.Interface
	asker   *managers.Asker
	config  *rest.Config
	archive *archive
	// namespaces are the namespace of the manager and, if it differs, that of its agents.
	namespaces []string
}

func newCollector(config *rest.Config, o Options, to *archive) (*collector, error) {
	config = rest.CopyConfig(config)
	config.Timeout = o.Timeout
	s, err := preflight.NewScheme()
	if err != nil {
		return nil, err
	}
	c := &collector{Options: o, config: config, archive: to}
	if c.Client, err = client.New(config, client.Options{Scheme: s}); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if c.core, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	c.asker, err = managers.New(config, managers.Flags{})
	return c, err
}

// collectAll collects the most important data first: there may be no room for the last. It fails only if no API server
// answers.
func (c *collector) collectAll(ctx context.Context) error {
	report, err := check.InspectCluster(ctx, c.config, c.Options.Options, nil)
	if err != nil {
		return err
	}
	agents := c.findAgentNamespace(ctx)
	c.namespaces = slices.Compact([]string{c.Namespace, agents})
	c.archive.scrub.addPublic(c.Namespace, agents, c.Only, preflight.ManagerDeployment)
	c.archive.addDocument("version.json", map[string]any{"client": c.Program, "kubernetes": report.Kubernetes, "manager": report.Manager})
	c.archive.addDocument("check.json", report)
	c.archive.scrub.own = true
	c.collectChart(ctx)
	pods := c.collectPods(ctx)
	c.archive.scrub.own = false
	c.collectKinds(ctx, "bundles", c.Objects+100, func(kind string) bool { return strings.HasSuffix(kind, "PolicyBundle") })
	c.collectNodes(ctx)
	c.collectSecrets(ctx)
	c.collectEvents(ctx)
	c.collectKinds(ctx, "objects", c.Objects, func(kind string) bool { return !strings.HasSuffix(kind, "PolicyBundle") })
	c.collectLogs(ctx, pods)
	c.collectMetrics(ctx, pods)
	c.collectDecisions(ctx)
	return ctx.Err()
}

// askServer makes a request that has a deadline of its own.
func (c *collector) askServer(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return request(ctx)
}

// omitFailed notes that a request failed.
func (c *collector) omitFailed(what string, err error) {
	if apierrors.IsForbidden(err) {
		c.archive.recordOmission(what, "denied: "+err.Error())
		return
	}
	c.archive.recordOmission(what, "the request failed: "+err.Error())
}

// findAgentNamespace reads the namespace of the agents from the manager's Deployment. If the Deployment cannot be read,
// that is noted when the Deployment itself is collected.
func (c *collector) findAgentNamespace(ctx context.Context) string {
	manager := &appsv1.Deployment{}
	if c.askServer(ctx, func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: preflight.ManagerDeployment}, manager)
	}) != nil {
		return c.Namespace
	}
	return check.FindAgentNamespace(manager, c.Namespace)
}

// plainOf converts a value to the types of decoded JSON.
func plainOf(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return plain, nil
}

// objectsOfChart are the kinds of the chart's objects, except secrets and roles.
func objectsOfChart() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for group, kinds := range map[string][]string{
		"/v1": {"Namespace", "Service", "ResourceQuota"}, "apps/v1": {"Deployment", "DaemonSet"}, "policy/v1": {"PodDisruptionBudget"},
		"admissionregistration.k8s.io/v1": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
		"apiextensions.k8s.io/v1":         {"CustomResourceDefinition"}, "apiregistration.k8s.io/v1": {"APIService"}, "networking.k8s.io/v1": {"NetworkPolicy"},
		"coordination.k8s.io/v1": {"Lease"}, "discovery.k8s.io/v1": {"EndpointSlice"},
	} {
		name, version, _ := strings.Cut(group, "/")
		for _, kind := range kinds {
			out = append(out, schema.GroupVersionKind{Group: name, Version: version, Kind: kind})
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// collectChart collects the objects of the chart. In the namespaces of the manager and its agents it collects objects of any owner: a quota
// or a policy of others may be the cause of a problem.
func (c *collector) collectChart(ctx context.Context) {
	ofChart := client.MatchingLabels{"app.kubernetes.io/name": "kruise"}
	for _, gvk := range objectsOfChart() {
		mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			c.archive.recordOmission("chart/"+gvk.Kind, err.Error())
			continue
		}
		switch {
		case gvk.Kind == "CustomResourceDefinition":
			c.collectOfChart(ctx, gvk) // the objects of OpenKruise have no labels
		case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
			for _, namespace := range c.namespaces {
				c.collectOfChart(ctx, gvk, client.InNamespace(namespace))
			}
		default:
			c.collectOfChart(ctx, gvk, ofChart)
		}
	}
}

// collectOfChart collects objects of a kind of the chart. The path of an object outside the manager's namespace has the
// namespace of the object.
func (c *collector) collectOfChart(ctx context.Context, gvk schema.GroupVersionKind, opts ...client.ListOption) {
	c.eachObject(ctx, "chart/"+gvk.Kind, gvk, 500, func(o *unstructured.Unstructured) {
		if gvk.Kind == "CustomResourceDefinition" {
			if _, ours := preflight.CRDResource(o.GetName()); !ours {
				return
			}
			dropSchemas(o)
		}
		in := ""
		if o.GetNamespace() != "" && o.GetNamespace() != c.Namespace {
			in = o.GetNamespace() + "/"
		}
		text, err := c.archive.scrub.maskObject(o.Object)
		c.archive.addText("chart/"+strings.ToLower(gvk.Kind)+"/"+in+o.GetName()+".json", text, err)
	}, opts...)
}

// dropSchemas removes the schemas and printer columns from the versions of a CRD.
func dropSchemas(o *unstructured.Unstructured) {
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			delete(version, "schema")
			delete(version, "additionalPrinterColumns")
		}
	}
	_ = unstructured.SetNestedSlice(o.Object, versions, "spec", "versions") // a spec that is none has none
}

// eachObject calls take for the first objects of a kind.
func (c *collector) eachObject(ctx context.Context, what string, gvk schema.GroupVersionKind, most int, take func(*unstructured.Unstructured), opts ...client.ListOption) {
	const page = 100
	for token, n := "", 0; n < most; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := c.askServer(ctx, func(ctx context.Context) error {
			return c.List(ctx, list, append([]client.ListOption{client.Limit(int64(min(page, most-n))), client.Continue(token)}, opts...)...)
		})
		if err != nil {
			c.omitFailed(what, err)
			return
		}
		for k := range list.Items {
			if n == most { // an API server may ignore the limit
				break
			}
			take(&list.Items[k])
			n++
		}
		if token = list.GetContinue(); token == "" {
			return
		}
		if n >= most {
			c.archive.recordOmission(what, fmt.Sprintf("there are more than %d", most))
		}
	}
}

// collectKinds takes objects of the kinds of Regatta.
func (c *collector) collectKinds(ctx context.Context, folder string, most int, wanted func(kind string) bool) {
	known := preflight.ServedVersions()
	for _, key := range slices.Sorted(maps.Keys(known)) {
		group, kind, _ := strings.Cut(key, "/")
		if !wanted(kind) {
			continue
		}
		gvk := schema.GroupVersionKind{Group: group, Version: known[key][len(known[key])-1], Kind: kind}
		mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			c.archive.recordOmission(folder+"/"+kind, err.Error())
			continue
		}
		if most == 0 {
			c.archive.recordOmission(folder+"/"+kind, "--objects is 0")
			continue
		}
		var opts []client.ListOption
		if c.Only != "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			opts = append(opts, client.InNamespace(c.Only))
		}
		c.eachObject(ctx, folder+"/"+kind, gvk, most, func(o *unstructured.Unstructured) {
			text, err := c.archive.scrub.maskObject(o.Object)
			c.archive.addText(folder+"/"+strings.ToLower(kind)+"/"+strings.TrimPrefix(o.GetNamespace()+"/", "/")+o.GetName()+".json", text, err)
		}, opts...)
	}
}

// collectNodes takes the status of nodes without their addresses and images.
func (c *collector) collectNodes(ctx context.Context) {
	type node struct {
		Name       string                 `json:"name"`
		Info       corev1.NodeSystemInfo  `json:"nodeInfo"`
		Taints     []corev1.Taint         `json:"taints,omitempty"`
		Conditions []corev1.NodeCondition `json:"conditions"`
	}
	var out []node
	const most = 1000
	c.eachObject(ctx, "nodes.json", corev1.SchemeGroupVersion.WithKind("Node"), most, func(o *unstructured.Unstructured) {
		n := &corev1.Node{}
		if err := c.Scheme().Convert(o, n, nil); err != nil {
			c.archive.recordOmission("nodes.json", err.Error())
			return
		}
		c.archive.scrub.addPublic(n.Name)
		info := n.Status.NodeInfo
		info.MachineID, info.SystemUUID, info.BootID = "", "", ""
		out = append(out, node{n.Name, info, n.Spec.Taints, n.Status.Conditions})
	})
	c.archive.addDocument("nodes.json", out)
}
