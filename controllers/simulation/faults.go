// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fault is a fault of one write of the controller.
type Fault string

// The faults.
const (
	NoFault    Fault = ""
	LostRace   Fault = "another client wrote first"
	LostAnswer Fault = "it is done, but the answer is lost"
	EndsBefore Fault = "the controller ends before it"
	EndsAfter  Fault = "the controller ends after it"
	Refuses    Fault = "the API server refuses it"
)

// errEnded is the error of writes of a controller that has ended.
var errEnded = errors.New("the controller has ended")

// faults injects faults into writes, and records all writes.
type faults struct {
	next func() Fault
	// deny returns the error with which the API server refuses a write; nil refuses nothing.
	deny    func(o client.Object, what string) error
	ended   bool
	history []string
}

// runWithFault does one write of the controller, or fails as its fault requires.
func (f *faults) runWithFault(what string, o client.Object, do func() error) error {
	if f.ended {
		return errEnded
	}
	if f.deny != nil {
		if err := f.deny(o, what); err != nil {
			f.appendHistory(what + ": " + err.Error())
			return err
		}
	}
	fault := f.next()
	text := fmt.Sprintf("%s %s/%s", what, reflect.TypeOf(o).Elem().Name(), o.GetName())
	if fault != NoFault {
		text += ": " + string(fault)
	}
	f.appendHistory(text)
	switch fault {
	case LostRace:
		return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, o.GetName(), errors.New(string(fault)))
	case Refuses:
		return apierrors.NewForbidden(schema.GroupResource{Resource: "objects"}, o.GetName(), errors.New(string(fault)))
	case EndsBefore:
		f.ended = true
		return errEnded
	}
	local := o.DeepCopyObject()
	err := do()
	switch fault {
	case LostAnswer:
		copyTo(o, local)
		return apierrors.NewTimeoutError(string(fault), 1)
	case EndsAfter:
		f.ended = true
		return errEnded
	}
	return err
}

func (f *faults) appendHistory(what string) { f.history = append(f.history, what) }
