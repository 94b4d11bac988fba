// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Names of the parameters of a storage class.
const (
	LimitParameter     = "limit"
	ExpansionParameter = "nodeExpansion"
	DelayParameter     = "nodeExpansionDelay"
)

// AtMount is the value of ExpansionParameter of a class whose file systems grow
// when the next pod mounts them, and not before.
const AtMount = "atMount"

// Parameters say how the volumes of a storage class grow.
type Parameters struct {
	// Limit is the size in bytes that no volume is made with or grows beyond, 0 for none.
	Limit int64 `json:"limit,omitempty"`
	// AtMount has the file system of a volume grow when it is mounted only.
	AtMount bool `json:"atMount,omitempty"`
	// Delay is how long after its volume a file system grows.
	Delay time.Duration `json:"delay,omitempty"`
}

// parse reads the parameters of a storage class. An error has the code
// InvalidArgument.
func parse(texts map[string]string) (Parameters, error) {
	var out Parameters
	for name, text := range texts {
		var err error
		switch name {
		case LimitParameter:
			var limit resource.Quantity
			limit, err = resource.ParseQuantity(text)
			out.Limit = limit.Value()
		case ExpansionParameter:
			if text != AtMount {
				return out, status.Errorf(codes.InvalidArgument, "parameter %s is %q, and can only be %q", name, text, AtMount)
			}
			out.AtMount = true
		case DelayParameter:
			out.Delay, err = time.ParseDuration(text)
		default:
			return out, status.Errorf(codes.InvalidArgument, "there is no parameter %q", name)
		}
		if err != nil {
			return out, status.Errorf(codes.InvalidArgument, "parameter %s is %q: %v", name, text, err)
		}
	}
	return out, nil
}

// allow refuses a size that is more than volumes may have, with the code OutOfRange.
func (p Parameters) allow(size int64) error {
	if p.Limit > 0 && size > p.Limit {
		return status.Errorf(codes.OutOfRange, "%s is more than the %s that a volume of this class may have", bytes(size), bytes(p.Limit))
	}
	return nil
}

func bytes(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
