// SPDX-License-Identifier: Apache-2.0

// Package sidecar has the commands about SidecarSets.
package sidecar

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/api"
	bundles "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/sidecars"
	"github.com/regatta-sh/regatta/controllers/webhook/review"
	"github.com/regatta-sh/regatta/engine"
	points "github.com/regatta-sh/regatta/engine/decision/injection"
)

// NewCommand makes the command with its subcommands. builtin has the built-in policies.
func NewCommand(builtin fs.FS) *cobra.Command {
	cmd := &cobra.Command{Use: "sidecar", Short: "Look at what SidecarSets do"}
	cmd.AddCommand(previewCommand(builtin))
	return cmd
}

// diff is the output format for people.
const diff = "diff"

type preview struct {
	cluster *target.Cluster
	from    []string
	bundles []string
	manager string
	form    *output.Form
	builtin fs.FS
}

func previewCommand(builtin fs.FS) *cobra.Command {
	p := &preview{cluster: target.NewCluster(), form: output.New(diff, output.YAML), builtin: builtin}
	cmd := &cobra.Command{
		Use:   "preview POD.yaml",
		Short: "Show what SidecarSets would make of a pod",
		Long: `Preview prints what SidecarSets would add to a pod if it were created now, as a
difference, and for each SidecarSet the rule by which the pod is given it or not.

The SidecarSets, their revisions and the labels of the namespace are those of the
cluster, or those of the files of --from. Policies are the built-in ones and the
bundles of --bundle: name those that are active in the cluster. The step of the
webhook is the manager's own, so that the output is what the webhook makes of the
same pod, but for the time in an annotation and for SidecarSets that are injected
into a share of the pods. Other webhooks take no part.

A pod that a policy refuses ends with 1.`,
		Example: `  regatta sidecar preview pod.yaml
  regatta sidecar preview pod.yaml --from sidecarset.yaml --bundle no-agent-for-jobs
  kubectl get pod web-0 -o yaml | regatta sidecar preview -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return p.runPreview(cmd, args[0]) },
	}
	p.cluster.AddFlags(cmd.Flags())
	f := cmd.Flags()
	f.StringSliceVar(&p.from, "from", nil, "files with SidecarSets, their ControllerRevisions and Namespaces, in place of a cluster")
	f.StringSliceVarP(&p.bundles, "bundle", "b", nil, "platform bundles: folders, .tar.gz files or .rego files")
	f.StringVar(&p.manager, "manager-namespace", "kruise-system", "the namespace of the manager, which the revisions of SidecarSets are in")
	p.form.AddTo(cmd)
	return cmd
}

func (p *preview) runPreview(cmd *cobra.Command, path string) error {
	raw, given, err := readPod(cmd.InOrStdin(), path)
	if err != nil {
		return err
	}
	set, err := policy.LoadBundles(p.bundles)
	if err != nil {
		return err
	}
	reader, namespace, err := p.newReader(cmd.Context(), cmd.ErrOrStderr(), given.Namespace)
	if err != nil {
		return err
	}
	e, err := engine.New(p.builtin, engine.WithPatience(20)) // no request waits for the answer
	if err != nil {
		return fmt.Errorf("loading the built-in policies: %w", err)
	}
	defer e.Close()
	if err := e.ActivateBundles(cmd.Context(), set); err != nil {
		return fmt.Errorf("loading the bundles: %w", err)
	}
	became, told, err := injectSidecars(cmd.Context(), e, reader, p.manager, namespace, raw)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if p.form.String() == output.YAML {
		_, err := out.Write(became)
		return err
	}
	before, err := yaml.JSONToYAML(raw)
	if err != nil {
		return fmt.Errorf("printing the pod: %w", err)
	}
	if _, err := io.WriteString(out, udiff.Unified("applied", "created", string(before), string(became))); err != nil {
		return err
	}
	return printRules(out, told)
}

// readPod reads a pod as JSON. The path - is the standard input.
func readPod(in io.Reader, path string) ([]byte, *corev1.Pod, error) {
	read := func() ([]byte, error) { return os.ReadFile(path) }
	if path == "-" {
		read = func() ([]byte, error) { return io.ReadAll(in) }
	}
	text, err := read()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the pod: %w", err)
	}
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, nil, exit.UsageError(fmt.Errorf("reading %s: %w", path, err))
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		return nil, nil, exit.UsageError(fmt.Errorf("reading %s: %w", path, err))
	}
	if pod.Kind != "Pod" || pod.APIVersion != "v1" {
		return nil, nil, exit.UsageError(fmt.Errorf("%s has apiVersion %q and kind %q, want v1 and Pod", path, pod.APIVersion, pod.Kind))
	}
	return raw, pod, nil
}

// newReader returns a reader of SidecarSets, and the namespace of the pod.
func (p *preview) newReader(ctx context.Context, warnings io.Writer, namespace string) (client.Reader, string, error) {
	about, err := p.cluster.ResolveNamespace(target.Target{Kind: target.Pod, Name: "preview"})
	if len(p.from) > 0 {
		files := &objects{namespaces: map[string]map[string]string{}}
		for _, path := range p.from {
			if err := files.readObjects(path); err != nil {
				return nil, "", err
			}
		}
		if err == nil {
			namespace = cmp.Or(namespace, about.Namespace)
		}
		return files, cmp.Or(namespace, "default"), nil
	}
	if err != nil {
		return nil, "", err
	}
	config, err := p.cluster.RESTConfig()
	if err != nil {
		return nil, "", err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		return nil, "", fmt.Errorf("making a client: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", fmt.Errorf("making a client: %w", err)
	}
	list := &bundles.ClusterPolicyBundleList{}
	if err := c.List(ctx, list); err != nil {
		fmt.Fprintf(warnings, "warning: which bundles are active is not known: %v\n", err)
	} else if len(p.bundles) == 0 && len(list.Items) > 0 {
		names := make([]string, len(list.Items))
		for i := range list.Items {
			names[i] = list.Items[i].Name
		}
		fmt.Fprintf(warnings, "warning: the rules of ClusterPolicyBundles %s take no part; give them by --bundle\n", strings.Join(names, ", "))
	}
	return c, cmp.Or(namespace, about.Namespace), nil
}

// injectSidecars returns the pod as the webhook changes it, as YAML, and the decision.
func injectSidecars(ctx context.Context, e *engine.Engine, reader client.Reader, manager, namespace string, raw []byte) ([]byte, points.SidecarsOutput, error) {
	var told points.SidecarsOutput
	step := sidecars.New(sidecars.Options{
		Cached: reader, Live: reader, Engine: e, Namespace: manager, Told: func(out points.SidecarsOutput) { told = out },
	})
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: namespace, Object: runtime.RawExtension{Raw: raw},
	}}
	answer := (&pod.Mutator{Steps: []pod.MutatingStep{step}, Patience: time.Minute}).Handle(ctx, request)
	if !answer.Allowed {
		err := errors.New(answer.Result.Message)
		if len(told.Refuse) > 0 {
			return nil, told, exit.RefusalError(err)
		}
		return nil, told, err
	}
	became, err := review.ApplyPatches(raw, answer)
	if err == nil {
		became, err = yaml.JSONToYAML(became)
	}
	if err != nil {
		return nil, told, fmt.Errorf("printing the pod: %w", err)
	}
	return became, told, nil
}

// printRules prints by which rule each SidecarSet is injected or left out.
func printRules(out io.Writer, told points.SidecarsOutput) error {
	if len(told.Inject)+len(told.Left) == 0 {
		_, err := fmt.Fprintln(out, "No SidecarSet selects the pod, and no rule adds one.")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nSIDECARSET\tINJECTED\tRULE\tWHY")
	for _, s := range told.Inject {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Set, s.Revision, s.Rule, s.Message)
	}
	for _, s := range told.Left {
		fmt.Fprintf(table, "%s\tno\t%s\t%s\n", s.Set, s.Rule, s.Message)
	}
	return table.Flush()
}
