// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// The annotation of jobs that a user started from a CronJob. kubectl create job --from sets the same.
const (
	instantiateKey    = "cronjob.kubernetes.io/instantiate"
	instantiateManual = "manual"
)

// broadcastJob has the flags of a BroadcastJob.
type broadcastJob struct {
	*creation
	podFlags
	spec         kruise.BroadcastJobSpec
	nodeSelector map[string]string
	from         string
}

func newBroadcastJobCommand() *cobra.Command {
	b := &broadcastJob{creation: newCreation("broadcastjobs", "BroadcastJob", validation.NameIsDNSLabel)}
	b.build, b.takesCommand = b.buildJob, true
	f := b.flags
	b.addFlags(f, "`Never|OnFailure`: whether a container that failed restarts; Never if unset")
	addLabelsFlag(f, &b.nodeSelector, "node-selector",
		"`labels` of the nodes that get a pod, such as disk=ssd; all nodes if unset")
	addAmountFlag(f, &b.spec.Parallelism, "parallelism",
		"`N|P%` of the nodes that run a pod at once; unlimited if unset")
	addChoiceFlag(f, &b.spec.CompletionPolicy.Type, "completion",
		"`Always|Never`: whether the job ends when all nodes are done, or waits for new nodes",
		kruise.AlwaysCompletionPolicyType, kruise.NeverCompletionPolicyType)
	addNumberFlag(f, &b.spec.CompletionPolicy.TTLSecondsAfterFinished, "ttl-seconds-after-finished", 0,
		"`seconds` after which a job that ended is deleted")
	addNameFlag(f, &b.from, "from",
		"`acj/NAME` of the AdvancedCronJob whose broadcastJobTemplate becomes the job", validateCronJobReference)
	return b.completeCommand(&cobra.Command{
		Use:     "broadcastjob NAME (--image IMAGE | --from acj/NAME) [flags] [-- COMMAND [ARGS...]]",
		Aliases: []string{"bcj"},
		Short:   "Run a pod to its end on every node",
		Long: `Create a BroadcastJob. It runs one pod on every node that the labels of --node-selector
select, and ends when all pods have succeeded. The pod has one container with the name
of the job, and COMMAND in place of the entrypoint of the image.

With --from the job is a copy of spec.template.broadcastJobTemplate of an
AdvancedCronJob, as if it were due now. No flag changes the copy. The AdvancedCronJob
does not count it as one of its runs: neither its concurrency policy nor its
history limits apply.`,
		Example: `  # Remove a cache from every node with an SSD, on a fifth of the nodes at once
  regatta create broadcastjob clean --image busybox:1.37 --node-selector disk=ssd --parallelism 20% -- rm -rf /tmp/cache

  # Prepare nodes that join later as well
  regatta create broadcastjob prepare --image registry.example.com/prepare:1 --completion Never

  # Run an AdvancedCronJob now
  regatta create broadcastjob clean-now --from acj/clean`,
	})
}

func (b *broadcastJob) buildJob(ctx context.Context, meta metav1.ObjectMeta, command []string) (*unstructured.Unstructured, error) {
	if b.from != "" {
		if err := b.validateCopy(command); err != nil {
			return nil, err
		}
		job, err := b.copyTemplate(ctx, meta)
		return job, withFailureCode(err)
	}
	if b.image == "" {
		return nil, errors.New("--image or --from is missing: name the image of the container, or an AdvancedCronJob to copy")
	}
	if err := validateCompletion(b.spec.CompletionPolicy); err != nil {
		return nil, err
	}
	spec := b.spec
	b.restart = cmp.Or(b.restart, corev1.RestartPolicyNever)
	template, err := b.buildTemplate(meta.Name, command)
	if err != nil {
		return nil, err
	}
	template.Spec.NodeSelector = b.nodeSelector
	spec.Template = template
	return encodeObject(&kruise.BroadcastJob{TypeMeta: b.typeMeta(), ObjectMeta: meta, Spec: spec})
}

// validateCompletion refuses what the CRDs refuse of a job that never ends.
func validateCompletion(policy kruise.CompletionPolicy) error {
	if policy.Type != kruise.NeverCompletionPolicyType {
		return nil
	}
	switch {
	case policy.TTLSecondsAfterFinished != nil:
		return errors.New("--ttl-seconds-after-finished and --completion Never exclude each other: the job never ends")
	case policy.ActiveDeadlineSeconds != nil:
		return errors.New("--active-deadline-seconds and --completion Never exclude each other: the job never ends")
	}
	return nil
}

// validateCopy refuses everything else that describes the job.
func (b *broadcastJob) validateCopy(command []string) error {
	var others []string
	b.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "from" {
			others = append(others, "--"+f.Name)
		}
	})
	if len(command) > 0 {
		others = append(others, "COMMAND")
	}
	if len(others) > 0 {
		return fmt.Errorf("--from copies the job as it is: leave out %s", strings.Join(others, ", "))
	}
	return nil
}

// cronJobKind is the kind of the objects that --from can name.
func cronJobKind() edit.Kind {
	return edit.SelectKinds(func(k edit.Kind) bool { return k.Kind == "AdvancedCronJob" })[0]
}

// validateCronJobReference checks acj/NAME. It is a ValidateNameFunc.
func validateCronJobReference(text string, prefix bool) []string {
	word, name, _ := strings.Cut(text, "/")
	if !cronJobKind().IsNamed(word) {
		return []string{"it must be acj/NAME, which names an AdvancedCronJob"}
	}
	return validation.NameIsDNSSubdomain(name, prefix)
}

// copyTemplate makes a job of the template of an AdvancedCronJob. It copies the fields as the cluster has them: the pod
// template may have fields that are newer than the Go types.
func (b *broadcastJob) copyTemplate(ctx context.Context, meta metav1.ObjectMeta) (*unstructured.Unstructured, error) {
	objects, err := b.options.OpenClient()
	if err != nil {
		return nil, err
	}
	_, name, _ := strings.Cut(b.from, "/")
	found, err := b.options.Read(ctx, objects, []edit.Reference{{Kind: cronJobKind(), Name: name}})
	if err != nil {
		return nil, err
	}
	job, err := readTemplate(found[0].Live)
	if err != nil {
		return nil, fmt.Errorf("copying %s: %w", found[0], err)
	}
	job.SetGroupVersionKind(b.kind.GroupVersion().WithKind(b.kind.Kind))
	job.SetName(meta.Name)
	job.SetNamespace(meta.Namespace)
	return job, nil
}

// readTemplate returns the spec, the labels and the annotations of the BroadcastJobs of an AdvancedCronJob. Its runs get
// no other metadata of the template.
func readTemplate(cronJob *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	template, ok, err := unstructured.NestedMap(cronJob.Object, "spec", "template", "broadcastJobTemplate")
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("it has no spec.template.broadcastJobTemplate: its jobs are of another kind")
	}
	job := &unstructured.Unstructured{Object: map[string]any{}}
	spec, ok, err := unstructured.NestedMap(template, "spec")
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("its spec.template.broadcastJobTemplate has no spec")
	}
	job.Object["spec"] = spec
	labels, _, err := unstructured.NestedStringMap(template, "metadata", "labels")
	if err != nil {
		return nil, err
	}
	annotations, _, err := unstructured.NestedStringMap(template, "metadata", "annotations")
	if err != nil {
		return nil, err
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[instantiateKey] = instantiateManual
	if len(labels) > 0 {
		job.SetLabels(labels)
	}
	job.SetAnnotations(annotations)
	return job, nil
}
