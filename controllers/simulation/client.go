// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// The finalizers that keep objects of a slow cluster while they terminate.
const (
	stopping = "simulation/kubelet"    // the containers of a pod
	inUse    = "simulation/protection" // the pods that use a claim
)

// cachedClient is the client of the controller: it reads from the cache.
func (c *cluster) cachedClient() client.Client {
	return interceptor.NewClient(c.server, interceptor.Funcs{
		Get: c.getCached, List: c.listCached, Create: c.createObject, Patch: c.patchObject, SubResourcePatch: c.patchSub, Delete: c.deleteObject, DeleteAllOf: c.deleteAllOf,
	})
}

// liveReader is the reader of the controller that reads past the cache.
func (c *cluster) liveReader() client.Reader {
	if !c.slow {
		return c.cachedClient()
	}
	return interceptor.NewClient(c.server, interceptor.Funcs{
		Get: func(ctx context.Context, server client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if c.unreachable() {
				return apierrors.NewTimeoutError("the API server does not answer", 1)
			}
			return server.Get(ctx, key, o, opts...)
		},
	})
}

func (c *cluster) createObject(ctx context.Context, server client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	return c.writeObject(ctx, "create", o, func() error {
		o.SetUID(c.nextUID())
		o.SetCreationTimestamp(metav1.NewTime(c.now()))
		pod, isPod := o.(*corev1.Pod)
		_, isClaim := o.(*corev1.PersistentVolumeClaim)
		if isPod && c.admits != nil {
			if err := c.admits.mutatePod(ctx, pod); err != nil {
				return err
			}
		}
		switch {
		case c.slow && isPod:
			o.SetFinalizers(append(o.GetFinalizers(), stopping))
		case c.slow && isClaim:
			o.SetFinalizers(append(o.GetFinalizers(), inUse))
		}
		return server.Create(ctx, o, opts...)
	})
}

func (c *cluster) patchObject(ctx context.Context, server client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	var d client.PatchOptions
	d.ApplyOptions(opts)
	return c.performPatch(ctx, "", o, p, d.DryRun, func() error { return server.Patch(ctx, o, p, opts...) })
}

func (c *cluster) patchSub(ctx context.Context, server client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	var d client.SubResourcePatchOptions
	d.ApplyOptions(opts)
	return c.performPatch(ctx, sub, o, p, d.DryRun, func() error {
		if err := server.SubResource(sub).Patch(ctx, o, p, opts...); err != nil || sub != "status" || len(d.DryRun) > 0 {
			return err
		}
		return c.patchLabels(ctx, o, p)
	})
}

// patchLabels writes the labels and annotations in a patch of a pod's status. An API
// server accepts them with the status; the server of the simulation does not.
func (c *cluster) patchLabels(ctx context.Context, o client.Object, p client.Patch) error {
	if _, ok := o.(*corev1.Pod); !ok || p.Type() == types.JSONPatchType {
		return nil
	}
	raw, err := p.Data(o)
	if err != nil {
		return fmt.Errorf("reading a patch: %w", err)
	}
	var patch struct {
		Metadata struct {
			Labels      map[string]any `json:"labels,omitempty"`
			Annotations map[string]any `json:"annotations,omitempty"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &patch); err != nil {
		return fmt.Errorf("reading a patch: %w", err)
	}
	if len(patch.Metadata.Labels)+len(patch.Metadata.Annotations) == 0 {
		return nil
	}
	if raw, err = json.Marshal(patch); err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	return c.server.Patch(ctx, o, client.RawPatch(types.MergePatchType, raw))
}

// performPatch applies a patch, or does a dry run of it, if the webhooks allow it.
func (c *cluster) performPatch(ctx context.Context, sub string, o client.Object, p client.Patch, dryRun []string, do func() error) error {
	asked := func() error {
		if err := c.validatePatch(ctx, sub, o, p, dryRun); err != nil {
			return err
		}
		return do()
	}
	switch {
	case len(dryRun) > 0:
		return c.tryRequest("patch", o, asked)
	case sub != "":
		return c.writeObject(ctx, "patch "+sub+" of", o, asked)
	}
	return c.writeObject(ctx, "patch", o, asked)
}

// validatePatch calls the validating webhooks for a patch of a pod.
func (c *cluster) validatePatch(ctx context.Context, sub string, o client.Object, p client.Patch, dryRun []string) error {
	was := c.findPod(o.GetName())
	if _, ok := o.(*corev1.Pod); !ok || was == nil || c.admits == nil || !c.admits.hasValidator(admissionv1.Update, sub) {
		return nil
	}
	now, err := applyPatch(was, o, p)
	if err != nil {
		return err
	}
	return c.reportRefusal(c.admits.validatePod(ctx, sub, was, now, dryRun...))
}

// reportRefusal reports a write that was refused.
func (c *cluster) reportRefusal(r *Refusal, err error) error {
	if r != nil {
		c.refused(*r)
	}
	return err
}

// tryRequest does a request that writes nothing; it may fail as a write may.
func (c *cluster) tryRequest(what string, o client.Object, do func() error) error {
	if c.faults == nil {
		return do()
	}
	return c.faults.runWithFault(what, o, do)
}

// writeObject does a write of the controller, records it and has it checked.
func (c *cluster) writeObject(ctx context.Context, what string, o client.Object, do func() error) error {
	return c.tryRequest(what, o, func() error {
		before := c.countPods()
		was := c.findPod(o.GetName())
		if err := do(); err != nil {
			return err
		}
		if err := c.commitWrite(ctx, o.DeepCopyObject().(client.Object), what == "delete"); err != nil {
			return err
		}
		if _, ok := o.(*corev1.Pod); ok {
			c.asked(before, was, c.findPod(o.GetName()))
		}
		if request, ok := o.(*kruise.ContainerRecreateRequest); ok && what == "create" && c.requested != nil {
			c.requested(request)
		}
		return nil
	})
}

// deleteObject deletes an object. Unless the cluster is slow it removes the object at once, and
// clears the finalizers, whose owners do not run here.
func (c *cluster) deleteObject(ctx context.Context, server client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	return c.writeObject(ctx, "delete", o, func() error {
		found := o.DeepCopyObject().(client.Object)
		if err := server.Get(ctx, client.ObjectKeyFromObject(o), found); err != nil {
			return err
		}
		var d client.DeleteOptions
		d.ApplyOptions(opts)
		if p := d.Preconditions; p != nil && (p.UID != nil && *p.UID != found.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != found.GetResourceVersion()) {
			return apierrors.NewConflict(corev1.Resource("objects"), o.GetName(), fmt.Errorf("it is another one by now, %s, at version %s", found.GetUID(), found.GetResourceVersion()))
		}
		pod, isPod := found.(*corev1.Pod)
		if isPod && c.admits != nil {
			if err := c.reportRefusal(c.admits.validatePod(ctx, "", pod, nil)); err != nil {
				return err
			}
		}
		if !c.slow && len(found.GetFinalizers()) > 0 {
			found.SetFinalizers(nil)
			if err := server.Update(ctx, found); err != nil {
				return err
			}
		}
		if err := server.Delete(ctx, found); err != nil {
			return err
		}
		if c.slow && isPod && pod.Spec.NodeName == "" { // no kubelet has to stop the pod
			return c.letGo(ctx, found, stopping)
		}
		return nil
	})
}

// letGo removes a finalizer.
func (c *cluster) letGo(ctx context.Context, o client.Object, finalizer string) error {
	found := o.DeepCopyObject().(client.Object)
	if err := c.server.Get(ctx, client.ObjectKeyFromObject(o), found); err != nil {
		return client.IgnoreNotFound(err)
	}
	found.SetFinalizers(slices.DeleteFunc(found.GetFinalizers(), func(f string) bool { return f == finalizer }))
	return client.IgnoreNotFound(c.server.Update(ctx, found))
}

// updatePod writes changes of a pod by another client than the controller.
func (c *cluster) updatePod(ctx context.Context, was, now *corev1.Pod) error {
	if !equality.Semantic.DeepEqual(was.ObjectMeta, now.ObjectMeta) || !equality.Semantic.DeepEqual(was.Spec, now.Spec) {
		status := now.Status.DeepCopy()
		if err := c.server.Update(ctx, now); err != nil {
			return fmt.Errorf("updating pod %s: %w", now.Name, err)
		}
		now.Status = *status
	}
	if err := c.server.Status().Update(ctx, now); err != nil {
		return fmt.Errorf("updating the status of pod %s: %w", now.Name, err)
	}
	return c.commitWrite(ctx, now, false)
}
