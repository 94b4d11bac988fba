// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Await is called before an object is written for which the API server must send pods to a webhook. The object is
// refused if Await fails.
type Await func(ctx context.Context, object client.Object) error

// AwaitNew calls await for objects that are created, and not for changes; nil if await is nil.
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
