// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/faults/trap"
)

// pulls are ImagePullJobs.
type pulls struct{}

func (pulls) name() string     { return "a pull" }
func (pulls) inside() []string { return []string{pull} }

func (pulls) prepare(_ context.Context, w *world, node string) (try, error) {
	n := w.next()
	return &job{world: w, name: fmt.Sprintf("pull-%d", n), node: node, image: fmt.Sprintf("faults-%d:slow-1s", n), timeout: 60, retries: 3}, nil
}

// job has one node pull one image.
type job struct {
	*world
	name, node, image string
	// timeout of an attempt in seconds, and how many there are beside the first.
	timeout, retries int32
	// deadline of the job; none if 0.
	deadline int64
}

func (j *job) meta() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: j.name} }

func (j *job) begin(ctx context.Context) error {
	q := &kruise.ImagePullJob{ObjectMeta: j.meta()}
	q.Spec.Image = j.image
	q.Spec.Selector = &kruise.ImagePullJobNodeSelector{Names: []string{j.node}}
	q.Spec.PullPolicy = &kruise.PullPolicy{TimeoutSeconds: &j.timeout, BackoffLimit: &j.retries}
	q.Spec.CompletionPolicy.Type = kruise.AlwaysCompletionPolicyType
	if j.deadline > 0 {
		q.Spec.CompletionPolicy.ActiveDeadlineSeconds = &j.deadline
	}
	if err := j.Create(ctx, q); err != nil {
		return fmt.Errorf("making ImagePullJob %s: %w", j.name, err)
	}
	return nil
}

// status is the job in a line.
func (j *job) status(ctx context.Context) (string, error) {
	q := &kruise.ImagePullJob{ObjectMeta: j.meta()}
	if err := j.Get(ctx, client.ObjectKeyFromObject(q), q); err != nil {
		return "", fmt.Errorf("reading ImagePullJob %s: %w", j.name, err)
	}
	s := q.Status
	if len(s.FailedNodes) > 0 {
		return fmt.Sprintf("%q, %d failed: %s", s.Message, s.Failed, strings.Join(s.FailedNodes, " ")), nil
	}
	return fmt.Sprintf("%q, %d of %d succeeded", s.Message, s.Succeeded, s.Desired), nil
}

func (j *job) ends(ctx context.Context, limit time.Duration, want string) error {
	return until(ctx, limit, func(ctx context.Context) (bool, string, error) {
		got, err := j.status(ctx)
		return got == want, got, err
	})
}

// tag is what the node says of the image.
func (j *job) tag(ctx context.Context) (*kruise.ImageTagStatus, error) {
	node := &kruise.NodeImage{}
	if err := j.Get(ctx, types.NamespacedName{Name: j.node}, node); err != nil {
		return nil, fmt.Errorf("reading NodeImage %s: %w", j.node, err)
	}
	name, tag, _ := strings.Cut(j.image, ":")
	for _, t := range node.Status.ImageStatuses[name].Tags {
		if t.Tag == tag {
			return &t, nil
		}
	}
	return &kruise.ImageTagStatus{}, nil
}

// pulled and refused are what a job comes to.
const pulled = `"job has completed", 1 of 1 succeeded`

func (j *job) refused() string { return `"job has completed", 1 failed: ` + j.node }

func (j *job) end(ctx context.Context, t *trap.Trap) (string, error) {
	if err := j.ends(ctx, patience, pulled); err != nil {
		return "", err
	}
	became := "Succeeded"
	if n := t.Passed(pull); n > 1 {
		became += fmt.Sprintf(", asked for %d times", n)
	}
	return became, nil
}

func (j *job) still(ctx context.Context) error {
	tag, err := j.tag(ctx)
	switch {
	case err != nil:
		return err
	case tag.Phase != kruise.ImagePhaseSucceeded || tag.Progress != 100 || tag.ImageID == "" || tag.Message != "":
		return fmt.Errorf("the NodeImage says %+v", *tag)
	}
	return nil
}

func (j *job) remove(ctx context.Context) error {
	q := &kruise.ImagePullJob{ObjectMeta: j.meta()}
	if err := client.IgnoreNotFound(j.Delete(ctx, q, &client.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})); err != nil {
		return fmt.Errorf("removing ImagePullJob %s: %w", j.name, err)
	}
	return nil
}
