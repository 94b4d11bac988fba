// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// copying is a client whose lists are copies of what the cache has, also where a caller asks for
// the cached objects themselves.
type copying struct{ client.Client }

// newCopying makes the client of a manager that copies (--disable-no-deepcopy).
func newCopying(config *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	return copying{c}, nil
}

// List implements client.Reader.
func (c copying) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.Client.List(ctx, list, append(opts[:len(opts):len(opts)], copies{})...)
}

// copies undoes client.UnsafeDisableDeepCopy.
type copies struct{}

// ApplyToList implements client.ListOption.
func (copies) ApplyToList(o *client.ListOptions) { o.UnsafeDisableDeepCopy = ptr.To(false) }
