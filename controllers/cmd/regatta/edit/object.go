// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

// Object is an object as the cluster has it.
type Object struct {
	Kind Kind
	Live *unstructured.Unstructured

	client dynamic.ResourceInterface
}

// String names the object to people.
func (o *Object) String() string { return o.Kind.Describe(o.Live.GetName()) }

// Read reads the objects that references name, in that order.
func (o *Options) Read(ctx context.Context, objects dynamic.Interface, references []Reference) ([]*Object, error) {
	about, err := o.Cluster.ResolveNamespace(target.Target{})
	if err != nil {
		return nil, err
	}
	var out []*Object
	for _, r := range references {
		client := objects.Resource(r.Kind.GroupVersionResource).Namespace(about.Namespace)
		in := " in namespace " + about.Namespace
		if r.Kind.ClusterScoped {
			client, in = objects.Resource(r.Kind.GroupVersionResource), ""
		}
		if r.Name == "" {
			found, err := o.listSelected(ctx, r.Kind, client)
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				return nil, fmt.Errorf("no %s%s is selected", DescribeKind(r.Kind), in)
			}
			out = append(out, found...)
			continue
		}
		live, err := client.Get(ctx, r.Name, metav1.GetOptions{})
		switch {
		case isUnserved(err):
			return nil, fmt.Errorf("the cluster has no %s", r.Kind.GroupVersionResource)
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("there is no %s%s", r.Kind.Describe(r.Name), in)
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", r.Kind.Describe(r.Name), err)
		}
		out = append(out, &Object{r.Kind, live, client})
	}
	return out, nil
}

// ForEach reads the objects that references name and does something with each. An error about one object
// does not keep the others from it; the highest of their exit codes is that of all.
func (o *Options) ForEach(ctx context.Context, references []Reference, do func(*Object) error) error {
	if err := o.ValidateFlags(); err != nil {
		return err
	}
	objects, err := o.OpenClient()
	if err != nil {
		return err
	}
	found, err := o.Read(ctx, objects, references)
	if err != nil {
		return err
	}
	var failed []error
	worst := exit.Fine
	for _, object := range found {
		err := do(object)
		if err == nil {
			continue
		}
		code := exit.Error{Code: exit.Failed}
		errors.As(err, &code)
		failed, worst = append(failed, err), max(worst, code.Code)
	}
	if len(failed) == 0 {
		return nil
	}
	return exit.Error{Code: worst, Err: errors.Join(failed...)}
}

// listSelected reads the selected objects of a kind.
func (o *Options) listSelected(ctx context.Context, kind Kind, client dynamic.ResourceInterface) ([]*Object, error) {
	found, err := ListAll(ctx, client, o.selector)
	if err != nil {
		return nil, fmt.Errorf("listing objects of kind %s: %w", DescribeKind(kind), err)
	}
	out := make([]*Object, len(found))
	for i, live := range found {
		out[i] = &Object{kind, live, client}
	}
	return out, nil
}

// ErrUnchanged is the error of a change that changes nothing.
var ErrUnchanged = errors.New("nothing changes")

// isUnserved reports whether an error says that the API server does not have the resource.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// refuseReplaced returns an error if an object was deleted and another one was created by its name.
func refuseReplaced(object *Object, newest *unstructured.Unstructured) error {
	if newest.GetUID() != object.Live.GetUID() {
		return exit.RefusalError(fmt.Errorf("%s was deleted, and another one was created by its name", object))
	}
	return nil
}

// AsRefusal gives an error of the API server the exit code of a refusal if an admission webhook, a policy, a quota or
// the permissions of the user refuse the write, or the object would not be valid.
func AsRefusal(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return exit.RefusalError(err)
	}
	return err
}

// Change is a change of an object. It gets a copy. A change that finds the object as it should be
// returns ErrUnchanged.
type Change func(object *unstructured.Unstructured) error

// Write changes an object and prints what was done, or with --preview what would be done. If another client writes the object at the same
// time, the change is made again on the newest object.
func (o *Options) Write(ctx context.Context, w io.Writer, object *Object, done string, change Change) error {
	if o.previews {
		return o.writePreview(ctx, w, object, change)
	}
	changed, err := o.ApplyChange(ctx, object, change)
	switch {
	case errors.Is(err, ErrUnchanged):
		return o.PrintObject(w, object.Live, "unchanged")
	case err != nil:
		return err
	}
	return o.PrintObject(w, changed, done)
}

// ApplyChange changes an object and returns it as the cluster has it then. With --dry-run it returns what
// the object would become.
func (o *Options) ApplyChange(ctx context.Context, object *Object, change Change) (*unstructured.Unstructured, error) {
	return object.writeLatest(ctx, "changing", func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		want := live.DeepCopy()
		if err := change(want); err != nil {
			return nil, err
		}
		patch, err := mergePatch(live, want)
		if err != nil || o.dryRun == dryRunClient {
			return want, err
		}
		return object.client.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{
			FieldManager: o.fieldManager, DryRun: o.serverDryRun(), FieldValidation: metav1.FieldValidationStrict,
		})
	})
}

// writeLatest calls a function that writes an object, with the object as it was read, and again with the newest one as
// long as another client has written it meanwhile. It returns what the function returns. doing is what errors say.
func (o *Object) writeLatest(
	ctx context.Context, doing string, write func(live *unstructured.Unstructured) (*unstructured.Unstructured, error),
) (*unstructured.Unstructured, error) {
	live := o.Live
	var written *unstructured.Unstructured
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var err error
		if written, err = write(live); !apierrors.IsConflict(err) {
			return err
		}
		newest, errRead := o.client.Get(ctx, live.GetName(), metav1.GetOptions{})
		if errRead != nil {
			return errRead
		}
		if errReplaced := refuseReplaced(o, newest); errReplaced != nil {
			return errReplaced
		}
		live = newest
		return err
	})
	switch {
	case errors.Is(err, ErrUnchanged):
		return nil, err
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s was deleted", o)
	case err != nil:
		return nil, AsRefusal(fmt.Errorf("%s %s: %w", doing, o, err))
	}
	return written, nil
}

// mergePatch is the difference of two states of an object, for that state only: it has the resource
// version of the first.
func mergePatch(from, to *unstructured.Unstructured) ([]byte, error) {
	before, err := from.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	after, err := to.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, fmt.Errorf("comparing the objects: %w", err)
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(patch, &fields); err != nil { // keeps integers that a float64 cannot have
		return nil, fmt.Errorf("comparing the objects: %w", err)
	}
	if len(fields) == 0 {
		return nil, ErrUnchanged
	}
	if err := unstructured.SetNestedField(fields, from.GetResourceVersion(), "metadata", "resourceVersion"); err != nil {
		return nil, fmt.Errorf("comparing the objects: %w", err)
	}
	return json.Marshal(fields)
}
