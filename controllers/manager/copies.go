// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// copyingClient is a client whose lists are copies of the cached objects, even if a caller asks for
// the cached objects themselves.
type copyingClient struct{ client.Client }

// List implements client.Reader.
func (c copyingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.Client.List(ctx, list, append(opts[:len(opts):len(opts)], copies{})...)
}

// copies undoes client.UnsafeDisableDeepCopy.
type copies struct{}

// ApplyToList implements client.ListOption.
func (copies) ApplyToList(o *client.ListOptions) { o.UnsafeDisableDeepCopy = ptr.To(false) }
