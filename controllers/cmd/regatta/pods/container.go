// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/cmd/util/podcmd"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
)

// chooser has the flags that choose a container of a pod.
type chooser struct{ container, sidecarSet string }

// sidecarText is the part of the help texts about --sidecarset.
const sidecarText = `With -S the container is one that a SidecarSet put into the pod. Of a pair that is upgraded
hot it is the one that works now, by annotation
` + kruise.SidecarSetWorkingHotUpgradeKey + ` of the pod.
If the SidecarSet has several containers, -c names one of them as the SidecarSet does.`

func (c *chooser) addFlags(cmd *cobra.Command, f *finder) {
	cmd.Flags().StringVarP(&c.container, "container", "c", "",
		"name of the `CONTAINER`; that of annotation "+podcmd.DefaultContainerAnnotationName+" of the pod, or else the first, if unset")
	cmd.Flags().StringVarP(&c.sidecarSet, "sidecarset", "S", "", "name of the `SIDECARSET` whose container is meant")
	names := &cobra.Command{}
	sets := edit.SelectKinds(func(k edit.Kind) bool { return k.Kind == "SidecarSet" })
	edit.AddCompletion(names, f.Cluster, sets, false)
	// Both flags exist, so that neither registration fails.
	_ = cmd.RegisterFlagCompletionFunc("sidecarset", func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return names.ValidArgsFunction(cmd, []string{sets[0].Names[0]}, typed)
	})
	_ = cmd.RegisterFlagCompletionFunc("container", c.completeContainers(f))
}

// completionTimeout is how long a shell waits for the names of containers.
const completionTimeout = 2 * time.Second

// completeContainers completes the names of the containers of the pod that is named before.
func (c *chooser) completeContainers(f *finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const nothing = cobra.ShellCompDirectiveNoFileComp
		if len(args) == 0 {
			return nil, nothing
		}
		f.patience = completionTimeout
		if f.openCluster(cmd) != nil {
			return nil, nothing
		}
		f.notes = io.Discard
		ctx, stop := context.WithTimeout(cmd.Context(), completionTimeout)
		defer stop()
		pods, err := f.findPods(ctx, args[0])
		if err != nil {
			return nil, nothing
		}
		var out []cobra.Completion
		for _, container := range listContainers(pods[0]) {
			if strings.HasPrefix(container.Name, typed) {
				out = append(out, container.Name)
			}
		}
		return out, nothing
	}
}

// listContainers returns the containers of a pod in the order in which one is chosen: those of the pod itself, its init
// containers, and its ephemeral containers.
func listContainers(pod *corev1.Pod) []*corev1.Container {
	var out []*corev1.Container
	for i := range pod.Spec.Containers {
		out = append(out, &pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		out = append(out, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.EphemeralContainers {
		out = append(out, (*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return out
}

// selectPods drops the pods without a container of the SidecarSet that is asked for. It refuses a selection without any.
func (c *chooser) selectPods(pods []*corev1.Pod, notes io.Writer) ([]*corev1.Pod, error) {
	if c.sidecarSet == "" {
		return pods, nil
	}
	var out []*corev1.Pod
	for _, pod := range pods {
		entries, err := podmeta.Read(pod, kruise.SidecarSetHashKey)
		if err != nil {
			return nil, fmt.Errorf("reading pod %s: %w", pod.Name, err)
		}
		if len(entries[c.sidecarSet].SidecarList) > 0 {
			out = append(out, pod)
		}
	}
	switch without := len(pods) - len(out); {
	case len(out) == 0 && len(pods) == 1:
		return nil, exit.RefusalErrorf("pod %s has no container of SidecarSet %s; it has %s", pods[0].Name, c.sidecarSet, describeSidecarSets(pods[0]))
	case len(out) == 0:
		return nil, exit.RefusalErrorf("none of the %d pods has a container of SidecarSet %s; pod %s has %s", len(pods), c.sidecarSet, pods[0].Name, describeSidecarSets(pods[0]))
	case without > 0:
		fmt.Fprintf(notes, "%d of %d pods have no container of SidecarSet %s\n", without, len(pods), c.sidecarSet)
	}
	return out, nil
}

// describeSidecarSets tells which SidecarSets have containers in a pod.
func describeSidecarSets(pod *corev1.Pod) string {
	sets := podmeta.InjectedSets(pod)
	if len(sets) == 0 {
		return "containers of no SidecarSet"
	}
	return "containers of " + edit.EscapeText(strings.Join(sets, ", "))
}

// chooseContainer returns the container of a pod that the flags name.
func (c *chooser) chooseContainer(pod *corev1.Pod, notes io.Writer) (string, error) {
	if c.sidecarSet == "" {
		found, err := podcmd.FindOrDefaultContainerByName(pod, c.container, false, notes)
		if err != nil {
			return "", exit.RefusalError(err)
		}
		return found.Name, nil
	}
	all, err := c.listSidecars(pod)
	if err != nil {
		return "", err
	}
	if c.container == "" {
		if len(all) > 1 {
			fmt.Fprintf(notes, "Defaulted container %q out of: %s\n", all[0].container, joinSidecars(all))
		}
		return all[0].container, nil
	}
	for _, s := range all {
		if c.container == s.name || c.container == s.container {
			return s.container, nil
		}
	}
	return "", exit.RefusalErrorf("container %s is not of SidecarSet %s in pod %s, which has %s", c.container, c.sidecarSet, pod.Name, joinSidecars(all))
}

// sidecar is a container that a SidecarSet put into a pod.
type sidecar struct {
	// name is what the SidecarSet calls it, and container what the pod calls the one that works.
	name, container string
}

func joinSidecars(all []sidecar) string {
	var out []string
	for _, s := range all {
		out = append(out, s.container)
	}
	return strings.Join(out, ", ")
}

// listSidecars returns the containers of the SidecarSet in a pod, in the order of the pod.
func (c *chooser) listSidecars(pod *corev1.Pod) ([]sidecar, error) {
	entries, err := podmeta.Read(pod, kruise.SidecarSetHashKey)
	if err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", pod.Name, err)
	}
	working := podmeta.WorkingContainers(pod)
	byContainer := map[string]sidecar{}
	for _, name := range entries[c.sidecarSet].SidecarList {
		container := name
		if works := working[name]; works != "" {
			if own, _ := podcmd.FindContainerByName(pod, name); own != nil && podmeta.IsInjected(own) {
				return nil, exit.RefusalErrorf("pod %s has container %s and, of another SidecarSet, the pair of %s; name the container with -c and leave out -S",
					pod.Name, name, edit.EscapeText(works))
			}
			container = works
		}
		byContainer[container] = sidecar{name, container}
	}
	var out []sidecar
	for _, container := range listContainers(pod) {
		if s, ok := byContainer[container.Name]; ok {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, exit.RefusalErrorf("pod %s has none of the containers that it records of SidecarSet %s", pod.Name, c.sidecarSet)
	}
	return out, nil
}
