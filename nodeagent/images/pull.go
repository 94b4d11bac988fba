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

// pull is one version of a tag that is being pulled, or was by this process.
type pull struct {
	key    key
	node   string
	spec   kruise.ImageTagSpec
	image  kruise.ImageSpec
	cancel context.CancelFunc
	status kruise.ImageTagStatus // guarded by Agent.mu
}

// reference is how the runtime is asked for a tag or a digest.
func (k key) reference() string {
	if strings.Contains(k.tag, ":") {
		return k.image + "@" + k.tag
	}
	return k.image + ":" + k.tag
}

// namespace is whose share of the slots a pull takes: that of the first job that wants it; "" if no job does.
func (p *pull) namespace() string {
	for i := range p.spec.OwnerReferences {
		if of := p.spec.OwnerReferences[i].Namespace; of != "" {
			return of
		}
	}
	return ""
}

// start says that the runtime is asked from now on. The caller holds a.mu.
func (p *pull) start(now time.Time) {
	p.status.Phase, p.status.StartTime = kruise.ImagePhasePulling, ptr.To(metav1.NewTime(now).Rfc3339Copy())
}

// begin starts a pull: at once where fewer are pulled than may be, so that the first that is
// written of it is that it has begun. The caller holds a.mu.
func (a *Agent) begin(node *kruise.NodeImage, k key, spec kruise.ImageTagSpec, image kruise.ImageSpec) *pull {
	ctx, cancel := context.WithCancel(a.ctx)
	p := &pull{key: k, node: node.Name, spec: spec, image: image, cancel: cancel, status: kruise.ImageTagStatus{
		Tag: k.tag, Version: spec.Version, Phase: kruise.ImagePhaseWaiting,
	}}
	subject := node.DeepCopy() // of events; the caller goes on with its own
	waits := a.slots != nil && !a.slots.TryAcquire(p.namespace())
	if !waits {
		p.start(a.now())
	}
	recovery.Go("images", func() {
		defer cancel()
		if waits {
			if a.slots.Acquire(ctx, p.namespace()) != nil {
				return
			}
			a.set(p, func(*kruise.ImageTagStatus) { p.start(a.now()) })
		}
		if a.slots != nil {
			defer a.slots.Release(p.namespace())
		}
		a.run(ctx, subject, p)
	}, nil)
	return p
}

// set changes what a pull says of itself.
func (a *Agent) set(p *pull, change func(*kruise.ImageTagStatus)) {
	func() {
		a.mu.Lock()
		defer a.mu.Unlock() // a panic of change is recovered
		change(&p.status)
	}()
	a.changed(p.node)
}

// run pulls, and says how that went. A pull that nothing wants any more says nothing.
func (a *Agent) run(ctx context.Context, node *kruise.NodeImage, p *pull) {
	begun := a.now()
	var id string
	err := recovery.Call("images", func() (err error) {
		id, err = a.attempts(ctx, p, begun)
		return err
	})
	if ctx.Err() != nil {
		return
	}
	a.set(p, func(s *kruise.ImageTagStatus) {
		s.CompletionTime = ptr.To(metav1.NewTime(a.now()).Rfc3339Copy())
		if err != nil {
			s.Phase, s.Message = kruise.ImagePhaseFailed, message.Of(err)
			return
		}
		s.Phase, s.Progress, s.Message, s.ImageID = kruise.ImagePhaseSucceeded, 100, "", p.key.image+"@"+id
	})
	if err != nil {
		text := fmt.Sprintf(kruise.PullImageFailedMessage, p.key.reference(), node.Name, message.Of(err))
		a.events.Event(node, corev1.EventTypeWarning, kruise.PullImageFailedReason, text)
		for i := range p.spec.OwnerReferences {
			a.events.Event(&p.spec.OwnerReferences[i], corev1.EventTypeWarning, kruise.PullImageFailedReason, text)
		}
		return
	}
	a.events.Eventf(node, corev1.EventTypeNormal, kruise.PullImageSucceedReason, kruise.PullImageSucceedMessage, p.key.image, p.key.tag, a.now().Sub(begun).Round(time.Millisecond))
}

// attempts is IMG-10: so many attempts, each for so long, within the deadline.
func (a *Agent) attempts(ctx context.Context, p *pull, begun time.Time) (string, error) {
	policy := p.spec.PullPolicy
	if policy == nil {
		policy = &kruise.ImageTagPullPolicy{}
	}
	timeout := time.Duration(ptr.Deref(policy.TimeoutSeconds, kruise.DefaultPullTimeoutSeconds)) * time.Second
	if s := policy.ActiveDeadlineSeconds; s != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(*s)*time.Second-a.now().Sub(begun), errors.New(kruise.NodeImageDeadlineExceededMessage))
		defer cancel()
	}
	pause := time.Second
	for left := ptr.Deref(policy.BackoffLimit, kruise.DefaultPullBackoffLimit); ; left-- {
		id, err := a.attempt(ctx, p, timeout)
		switch {
		case err == nil:
			return id, nil
		case ended(ctx):
			return "", fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case left <= 0:
			return "", err
		}
		a.set(p, func(s *kruise.ImageTagStatus) { s.Message = message.Of(err) })
		a.sleep(ctx, pause)
		pause = min(2*pause, mostSleep)
	}
}

// ended says whether a context has ended, or ends right now: the runtime knows its deadline,
// and may answer a moment ahead of it.
func ended(ctx context.Context) bool {
	const ahead = 100 * time.Millisecond
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < ahead {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// attempt tries each login that there is for the image, and at last none.
func (a *Agent) attempt(ctx context.Context, p *pull, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	runtime, err := a.node.Images(ctx)
	if err != nil {
		return "", err
	}
	reference := p.key.reference()
	if p.spec.ImagePullPolicy == kruise.PullIfNotPresent {
		if id, err := runtime.Image(ctx, reference); err != nil || id != "" {
			return id, err
		}
	}
	sandbox := cri.Sandbox{Annotations: map[string]string{kruise.PullingImageByKey: kruise.PullingImageByDaemon}}
	if c := p.image.SandboxConfig; c != nil {
		sandbox.Labels = c.Labels
		maps.Copy(sandbox.Annotations, c.Annotations)
	}
	logins, wrong := a.logins(ctx, p)
	for _, login := range append(logins, nil) {
		id, err := runtime.Pull(ctx, reference, login, sandbox)
		if err == nil {
			return id, nil
		}
		wrong = append(wrong, err)
		if ctx.Err() != nil {
			break
		}
	}
	return "", errors.Join(wrong...)
}
