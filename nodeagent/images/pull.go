// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/recovery"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/message"
)

// mostSleep is the longest wait between two attempts.
const mostSleep = 30 * time.Second

// pull is one version of a tag that this process pulls, or has pulled.
type pull struct {
	key    key
	node   string
	share  string // of the slots: the namespace of the first job that wants the tag; "" if no job does
	cancel context.CancelFunc

	// Agent.mu guards the other fields. An edit of a job changes spec and image while the pull runs, and closes
	// changed.
	spec    kruise.ImageTagSpec
	image   kruise.ImageSpec
	changed chan struct{}
	status  kruise.ImageTagStatus
}

// imageReference is the reference of a tag or a digest for the runtime.
func (k key) imageReference() string {
	if strings.Contains(k.tag, ":") {
		return k.image + "@" + k.tag
	}
	return k.image + ":" + k.tag
}

// namespaceOf is the namespace of the first job that wants a tag; "" if no job does.
func namespaceOf(spec kruise.ImageTagSpec) string {
	for i := range spec.OwnerReferences {
		if of := spec.OwnerReferences[i].Namespace; of != "" {
			return of
		}
	}
	return ""
}

// markPulling records that the pull has begun. The caller holds a.mu.
func (p *pull) markPulling(now time.Time) {
	p.status.Phase, p.status.StartTime = kruise.ImagePhasePulling, ptr.To(metav1.NewTime(now).Rfc3339Copy())
}

// beginPull starts a pull: at once if a slot is free, so that the first status that is written says
// that it has begun. The caller holds a.mu.
func (a *Agent) beginPull(node *kruise.NodeImage, k key, spec kruise.ImageTagSpec, image kruise.ImageSpec) *pull {
	ctx, cancel := context.WithCancel(a.ctx)
	p := &pull{
		key: k, node: node.Name, share: namespaceOf(spec), cancel: cancel, spec: spec, image: image, changed: make(chan struct{}),
		status: kruise.ImageTagStatus{Tag: k.tag, Version: spec.Version, Phase: kruise.ImagePhaseWaiting},
	}
	subject := node.DeepCopy() // a copy for events, since the caller changes its own
	waits := a.slots != nil && !a.slots.TryAcquire(p.share)
	if !waits {
		p.markPulling(a.now())
	}
	recovery.Go("images", func() {
		defer cancel()
		if waits {
			if a.slots.Acquire(ctx, p.share) != nil {
				return
			}
			a.updatePull(p, func(*kruise.ImageTagStatus) { p.markPulling(a.now()) })
		}
		if a.slots != nil {
			defer a.slots.Release(p.share)
		}
		a.runPull(ctx, subject, p)
	}, nil)
	return p
}

// updatePull changes the status of a pull.
func (a *Agent) updatePull(p *pull, change func(*kruise.ImageTagStatus)) {
	func() {
		a.mu.Lock()
		defer a.mu.Unlock() // a panic of change is recovered
		change(&p.status)
	}()
	a.enqueueStatus(p.node)
}

// runPull pulls, and reports the result. A pull that no job wants any more reports nothing.
func (a *Agent) runPull(ctx context.Context, node *kruise.NodeImage, p *pull) {
	begun := a.now()
	var id string
	err := recovery.Call("images", func() (err error) {
		id, err = a.pullWithRetries(ctx, p, begun)
		return err
	})
	if ctx.Err() != nil {
		return
	}
	a.updatePull(p, func(s *kruise.ImageTagStatus) {
		s.CompletionTime = ptr.To(metav1.NewTime(a.now()).Rfc3339Copy())
		if err != nil {
			s.Phase, s.Message = kruise.ImagePhaseFailed, message.ErrorText(err)
			return
		}
		s.Phase, s.Progress, s.Message, s.ImageID = kruise.ImagePhaseSucceeded, 100, "", p.key.image+"@"+id
	})
	if err != nil {
		text := fmt.Sprintf(kruise.PullImageFailedMessage, p.key.imageReference(), node.Name, message.ErrorText(err))
		a.events.Event(node, corev1.EventTypeWarning, kruise.PullImageFailedReason, text)
		order := a.orderOf(p)
		for i := range order.spec.OwnerReferences {
			a.events.Event(&order.spec.OwnerReferences[i], corev1.EventTypeWarning, kruise.PullImageFailedReason, text)
		}
		return
	}
	a.events.Eventf(node, corev1.EventTypeNormal, kruise.PullImageSucceedReason, kruise.PullImageSucceedMessage, p.key.image, p.key.tag, a.now().Sub(begun).Round(time.Millisecond))
}

// pullWithRetries is IMG-10: it makes the given number of attempts, each within its timeout, within the
// deadline.
func (a *Agent) pullWithRetries(ctx context.Context, p *pull, begun time.Time) (string, error) {
	ctx, cancel := a.withDeadline(ctx, p, begun, errors.New(kruise.NodeImageDeadlineExceededMessage), deadlineOf)
	defer cancel()
	pause := time.Second
	for tried := int64(1); ; tried++ {
		id, err := a.tryLogins(ctx, p)
		switch {
		case err == nil:
			return id, nil
		case ctx.Err() != nil:
			return "", fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case tried > int64(ptr.Deref(a.orderOf(p).pullPolicy().BackoffLimit, kruise.DefaultPullBackoffLimit)):
			return "", err
		}
		a.updatePull(p, func(s *kruise.ImageTagStatus) { s.Message = message.ErrorText(err) })
		a.sleep(ctx, pause)
		pause = min(2*pause, mostSleep)
	}
}

// tryLogins tries each login for the image, and finally an anonymous pull.
func (a *Agent) tryLogins(ctx context.Context, p *pull) (string, error) {
	ctx, cancel := a.withDeadline(ctx, p, a.now(), errors.New("the attempt exceeds the timeoutSeconds"), timeoutOf)
	defer cancel()
	order := a.orderOf(p)
	runtime, err := a.node.ImageRuntime(ctx)
	if err != nil {
		return "", err
	}
	reference := p.key.imageReference()
	if order.spec.ImagePullPolicy == kruise.PullIfNotPresent {
		if id, err := runtime.ImageID(ctx, reference); err != nil || id != "" {
			return id, err
		}
	}
	sandbox := cri.Sandbox{Annotations: map[string]string{kruise.PullingImageByKey: kruise.PullingImageByDaemon}}
	if c := order.image.SandboxConfig; c != nil {
		sandbox.Labels = c.Labels
		maps.Copy(sandbox.Annotations, c.Annotations)
	}
	logins, wrong := a.loginsFor(ctx, p.key.image, order.image.PullSecrets)
	for _, login := range append(logins, nil) {
		id, err := runtime.PullImage(ctx, reference, login, sandbox)
		if err == nil {
			return id, nil
		}
		err = concealLogin(err, reference, login)
		if ctx.Err() != nil {
			wrong = append(wrong, fmt.Errorf("%w: %w", context.Cause(ctx), err))
			break
		}
		wrong = append(wrong, err)
	}
	return "", errors.Join(wrong...)
}
