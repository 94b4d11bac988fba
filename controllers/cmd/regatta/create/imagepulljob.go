// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// imagePullJob has the flags of an ImagePullJob.
type imagePullJob struct {
	*creation
	spec         kruise.ImagePullJobSpec
	pull         kruise.PullPolicy
	nodes        []string
	nodeSelector *metav1.LabelSelector
}

func newImagePullJobCommand() *cobra.Command {
	j := &imagePullJob{creation: newCreation("imagepulljobs", "ImagePullJob", validation.NameIsDNSSubdomain)}
	j.build = j.buildJob
	f, completion := j.flags, &j.spec.CompletionPolicy
	addImageFlag(f, &j.spec.Image, "`IMAGE` that the nodes pull")
	addSelectorFlag(f, &j.nodeSelector, "node-selector",
		"`labels` of the nodes that pull, such as disk=ssd; all nodes if no flag selects some")
	addNamesFlag(f, &j.nodes, "nodes",
		"`names` of the nodes that pull, separated by commas", validation.NameIsDNSSubdomain)
	addSelectorFlag(f, &j.spec.PodSelector, "pod-selector",
		"`labels` of pods in the namespace: the nodes pull that they run on")
	f.Func("parallelism", "pull on `N` nodes at once; 1 if unset, and 0 pauses the job", func(text string) error {
		amount, err := parseAmount(text)
		if err != nil || amount.Type == intstr.String {
			return errors.New("it must be an integer, 0 or more; an ImagePullJob takes no percentage")
		}
		j.spec.Parallelism = amount
		return nil
	})
	addChoiceFlag(f, &j.spec.ImagePullPolicy, "pull-policy",
		"`Always|IfNotPresent`: whether a node pulls an image that it has",
		kruise.PullAlways, kruise.PullIfNotPresent)
	addNamesFlag(f, &j.spec.PullSecrets, "pull-secrets",
		"`names` of Secrets in the namespace to log in to the registry with, separated by commas",
		validation.NameIsDNSSubdomain)
	addNumberFlag(f, &j.pull.BackoffLimit, "backoff-limit", 0,
		fmt.Sprintf("try `N` times more before a node gives up; %d if unset", kruise.DefaultPullBackoffLimit))
	addNumberFlag(f, &j.pull.TimeoutSeconds, "timeout-seconds", 0,
		fmt.Sprintf("`seconds` that one try may take; %d if unset", kruise.DefaultPullTimeoutSeconds))
	addChoiceFlag(f, &completion.Type, "completion",
		"`Always|Never`: whether the job ends when all nodes are done, or pulls again and waits for new nodes",
		kruise.AlwaysCompletionPolicyType, kruise.NeverCompletionPolicyType)
	addNumberFlag(f, &completion.ActiveDeadlineSeconds, "active-deadline-seconds", 0,
		"`seconds` after which a job that has not ended fails")
	addNumberFlag(f, &completion.TTLSecondsAfterFinished, "ttl-seconds-after-finished", 0,
		"`seconds` after which a job that ended is deleted")
	return j.completeCommand(&cobra.Command{
		Use:     "imagepulljob NAME --image IMAGE [flags]",
		Aliases: []string{"ipj"},
		Short:   "Pull an image to nodes before pods need it",
		Long: `Create an ImagePullJob. Node agents pull the image to all nodes, or to the nodes that
--node-selector, --nodes or --pod-selector selects. Give one of these flags at most.`,
		Example: `  # Pull an image to all nodes, ten at a time
  regatta create imagepulljob web-2 --image registry.example.com/web:2 --parallelism 10

  # Pull an image to the nodes that run the pods of an app, from a private registry
  regatta create imagepulljob web-2 --image registry.example.com/web:2 --pod-selector app=web --pull-secrets registry`,
	})
}

func (j *imagePullJob) buildJob(_ context.Context, meta metav1.ObjectMeta, _ []string) (*unstructured.Unstructured, error) {
	if err := j.validateSpec(); err != nil {
		return nil, err
	}
	spec := j.spec
	switch {
	case j.nodeSelector != nil:
		spec.Selector = &kruise.ImagePullJobNodeSelector{LabelSelector: *j.nodeSelector}
	case len(j.nodes) > 0:
		spec.Selector = &kruise.ImagePullJobNodeSelector{Names: j.nodes}
	}
	if j.pull != (kruise.PullPolicy{}) {
		spec.PullPolicy = &j.pull
	}
	job, err := encodeObject(&kruise.ImagePullJob{TypeMeta: j.typeMeta(), ObjectMeta: meta, Spec: spec})
	if err != nil || spec.CompletionPolicy != (kruise.CompletionPolicy{}) {
		return job, err
	}
	// The CRD requires the field, and accepts it without fields of its own.
	return job, withFailureCode(unstructured.SetNestedMap(job.Object, map[string]any{}, "spec", "completionPolicy"))
}

// validateSpec refuses what the rules of the CRD refuse.
func (j *imagePullJob) validateSpec() error {
	selects := 0
	for _, given := range []bool{j.nodeSelector != nil, len(j.nodes) > 0, j.spec.PodSelector != nil} {
		if given {
			selects++
		}
	}
	policy := j.spec.CompletionPolicy
	timeout := int64(ptr.Deref(j.pull.TimeoutSeconds, kruise.DefaultPullTimeoutSeconds))
	switch {
	case j.spec.Image == "":
		return errors.New("--image is missing: name the image that the nodes pull")
	case selects > 1:
		return errors.New("--node-selector, --nodes and --pod-selector exclude each other")
	}
	if err := validateCompletion(policy); err != nil {
		return err
	}
	if deadline := policy.ActiveDeadlineSeconds; deadline != nil && *deadline < timeout {
		return fmt.Errorf("--active-deadline-seconds is %d: it must be %d or more, the time of one try, which --timeout-seconds sets",
			*deadline, timeout)
	}
	return nil
}
