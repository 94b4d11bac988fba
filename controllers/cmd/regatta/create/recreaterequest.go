// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// leastDeadline is the least activeDeadlineSeconds that the CRD accepts.
const leastDeadline = 3

// recreateRequest has the flags of a ContainerRecreateRequest.
type recreateRequest struct {
	*creation
	containers []string
	minStarted *int32
	strategy   kruise.ContainerRecreateRequestStrategy
	spec       kruise.ContainerRecreateRequestSpec
}

func newRecreateRequestCommand() *cobra.Command {
	r := &recreateRequest{
		creation: newCreation("containerrecreaterequests", "ContainerRecreateRequest", validation.NameIsDNSSubdomain),
	}
	r.build, r.takesNoName = r.buildRequest, true
	f := r.flags
	addNameFlag(f, &r.spec.PodName, "pod", "`POD` whose containers restart", validation.NameIsDNSSubdomain)
	addNamesFlag(f, &r.containers, "containers",
		"`names` of the containers that restart, separated by commas, in this order; all of spec.containers if unset",
		validation.NameIsDNSLabel)
	f.BoolVar(&r.strategy.OrderedRecreate, "ordered-recreate", false,
		"restart a container only after the one before it is ready again")
	addNumberFlag(f, &r.strategy.UnreadyGracePeriodSeconds, "unready-grace-period-seconds", 0,
		"`seconds` for which the pod is not ready before its containers stop")
	addNumberFlag(f, &r.strategy.TerminationGracePeriodSeconds, "termination-grace-period-seconds", 0,
		"`seconds` that a container may take to stop before it is killed; those of the pod if unset")
	addNumberFlag(f, &r.minStarted, "min-started-seconds", 0,
		"`seconds` for which a container must run before its restart has succeeded")
	addChoiceFlag(f, &r.strategy.FailurePolicy, "failure-policy",
		"`Fail|Ignore`: whether the other containers restart after one could not be stopped",
		kruise.ContainerRecreateRequestFailurePolicyFail, kruise.ContainerRecreateRequestFailurePolicyIgnore)
	addNumberFlag(f, &r.spec.ActiveDeadlineSeconds, "active-deadline-seconds", leastDeadline,
		"`seconds` after which the request is complete, whether the containers restarted or not")
	addNumberFlag(f, &r.spec.TTLSecondsAfterFinished, "ttl-seconds-after-finished", 0,
		"`seconds` after which a complete request is deleted")
	return r.completeCommand(&cobra.Command{
		Use:     "crr [NAME] --pod POD [flags]",
		Aliases: []string{"containerrecreaterequest"},
		Short:   "Restart containers of a pod in place",
		Long: `Create a ContainerRecreateRequest. It restarts containers of one pod and leaves the pod
where it is, with its name, address and volumes. Node agents do the restart.

Without --containers it names all containers of the pod's spec.containers. The command
reads the pod and refuses a container that the pod does not have. Init containers
cannot be restarted. With --containers and --dry-run=client it does not read the pod.

Without NAME the API server makes a name that starts with the name of the pod. A
manifest without a name can be created with kubectl create -f, and not applied.`,
		Example: `  # Restart all containers of a pod
  regatta create crr --pod web-0

  # Restart two containers, one after the other, and delete the request a minute later
  regatta create crr restart-web --pod web-0 --containers app,log --ordered-recreate --ttl-seconds-after-finished 60`,
	})
}

func (r *recreateRequest) buildRequest(ctx context.Context, meta metav1.ObjectMeta, _ []string) (*unstructured.Unstructured, error) {
	if r.spec.PodName == "" {
		return nil, errors.New("--pod is missing: name the pod whose containers restart")
	}
	if meta.Name == "" {
		meta.GenerateName = r.spec.PodName + "-"
	}
	containers := r.containers
	if len(containers) == 0 || !r.options.IsClientDryRun() {
		var err error
		if containers, err = r.findContainers(ctx); err != nil {
			return nil, withFailureCode(err)
		}
	}
	spec := r.spec
	for _, name := range containers {
		spec.Containers = append(spec.Containers, kruise.ContainerRecreateRequestContainer{Name: name})
	}
	strategy := r.strategy
	if r.minStarted != nil {
		strategy.MinStartedSeconds = *r.minStarted
	}
	if strategy != (kruise.ContainerRecreateRequestStrategy{}) {
		spec.Strategy = &strategy
	}
	return encodeObject(&kruise.ContainerRecreateRequest{TypeMeta: r.typeMeta(), ObjectMeta: meta, Spec: spec})
}

// findContainers returns the containers that restart, which the pod has.
func (r *recreateRequest) findContainers(ctx context.Context) ([]string, error) {
	objects, err := r.options.OpenClient()
	if err != nil {
		return nil, err
	}
	kind := edit.Kind{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod"}
	found, err := r.options.Read(ctx, objects, []edit.Reference{{Kind: kind, Name: r.spec.PodName}})
	if err != nil {
		return nil, err
	}
	pod := found[0].Live
	names, err := containerNames(pod, "containers")
	switch {
	case err != nil:
		return nil, err
	case len(r.containers) == 0 && len(names) == 0:
		return nil, fmt.Errorf("pod %s has no containers", pod.GetName())
	case len(r.containers) == 0:
		return names, nil
	}
	return r.containers, requireContainers(pod, names, r.containers)
}

// requireContainers refuses names that are not among the containers of a pod.
func requireContainers(pod *unstructured.Unstructured, names, want []string) error {
	init, err := containerNames(pod, "initContainers")
	if err != nil {
		return err
	}
	for _, name := range want {
		switch {
		case slices.Contains(names, name):
		case slices.Contains(init, name):
			return fmt.Errorf("--containers names %q, an init container of pod %s: it cannot be restarted", name, pod.GetName())
		default:
			return fmt.Errorf("--containers names %q, but pod %s has no such container in spec.containers", name, pod.GetName())
		}
	}
	return nil
}

// containerNames are the names of containers in a field of a pod's spec.
func containerNames(pod *unstructured.Unstructured, list string) ([]string, error) {
	containers, _, err := unstructured.NestedSlice(pod.Object, "spec", list)
	if err != nil {
		return nil, fmt.Errorf("reading the containers of pod %s: %w", pod.GetName(), err)
	}
	var out []string
	for i, container := range containers {
		fields, ok := container.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("reading the containers of pod %s: spec.%s[%d] is no object", pod.GetName(), list, i)
		}
		name, ok, err := unstructured.NestedString(fields, "name")
		if err != nil || !ok {
			return nil, fmt.Errorf("reading the containers of pod %s: spec.%s[%d] has no name", pod.GetName(), list, i)
		}
		out = append(out, name)
	}
	return out, nil
}
