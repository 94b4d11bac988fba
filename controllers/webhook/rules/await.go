// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Await is called before an object is written that pods are sent to a webhook for. The object is refused where it fails.
type Await func(ctx context.Context, object client.Object) error

// AwaitNew awaits objects that are created, and none that are changed; nil where nothing is awaited.
func AwaitNew[T client.Object](await Await) func(ctx context.Context, object, old T) error {
	if await == nil {
		return nil
	}
	return func(ctx context.Context, object, old T) error {
		var none T
		if any(old) != any(none) {
			return nil
		}
		return await(ctx, object)
	}
}
