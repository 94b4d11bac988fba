// SPDX-License-Identifier: Apache-2.0

package create

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// The functions of this file add flags whose values are checked as they are read, so that the message names the
// flag. Errors say what is wrong with the value only.

// addNumberFlag adds a flag for an integer. The target stays nil without it.
func addNumberFlag[T int32 | int64](f *pflag.FlagSet, target **T, name string, least T, usage string) {
	f.Func(name, usage, func(text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		tooLarge := errors.Is(err, strconv.ErrRange) && n > 0
		switch {
		case tooLarge, err == nil && n > 0 && int64(T(n)) != n:
			return errors.New("it is too large")
		case err != nil, n < int64(least):
			return fmt.Errorf("it must be an integer, %d or more", least)
		}
		*target = ptr.To(T(n))
		return nil
	})
}

// addAmountFlag adds a flag for a number or a percentage. The target stays nil without it.
func addAmountFlag(f *pflag.FlagSet, target **intstr.IntOrString, name, usage string) {
	f.Func(name, usage, func(text string) (err error) {
		*target, err = parseAmount(text)
		return err
	})
}

func parseAmount(text string) (*intstr.IntOrString, error) {
	digits, isPercentage := strings.CutSuffix(text, "%")
	n, err := strconv.ParseInt(digits, 10, 32)
	switch {
	case err != nil, n < 0, isPercentage && n > 100:
		return nil, errors.New("it must be an integer, 0 or more, or a percentage from 0% to 100%")
	case isPercentage:
		return ptr.To(intstr.FromString(strconv.FormatInt(n, 10) + "%")), nil
	}
	return ptr.To(intstr.FromInt32(int32(n))), nil
}

// addChoiceFlag adds a flag for one of some values.
func addChoiceFlag[T ~string](f *pflag.FlagSet, target *T, name, usage string, allowed ...T) {
	f.Func(name, usage, func(text string) error {
		if !slices.Contains(allowed, T(text)) {
			return fmt.Errorf("it must be %s", joinChoices(allowed))
		}
		*target = T(text)
		return nil
	})
}

func joinChoices[T ~string](allowed []T) string {
	var words []string
	for _, value := range allowed {
		words = append(words, string(value))
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// addNameFlag adds a flag for the name of an object.
func addNameFlag(f *pflag.FlagSet, target *string, name, usage string, validate validation.ValidateNameFunc) {
	f.Func(name, usage, func(text string) error {
		if wrong := validate(text, false); len(wrong) > 0 {
			return errors.New(strings.Join(wrong, "; "))
		}
		*target = text
		return nil
	})
}

// addNamesFlag adds a flag for a list of names. A flag that is repeated adds to the list.
func addNamesFlag(f *pflag.FlagSet, target *[]string, name, usage string, validate validation.ValidateNameFunc) {
	f.Func(name, usage, func(text string) error {
		for _, one := range strings.Split(text, ",") {
			if wrong := validate(one, false); len(wrong) > 0 {
				return fmt.Errorf("%q is no name: %s", one, strings.Join(wrong, "; "))
			}
			if slices.Contains(*target, one) {
				return fmt.Errorf("%q is given twice", one)
			}
			*target = append(*target, one)
		}
		return nil
	})
}

// addSelectorFlag adds a flag for a label selector. The target stays nil without it. A flag that is repeated adds
// to the selector.
func addSelectorFlag(f *pflag.FlagSet, target **metav1.LabelSelector, name, usage string) {
	var given []string
	f.Func(name, usage, func(text string) error {
		if strings.TrimSpace(text) == "" {
			return errors.New("it would select everything; give labels, such as app=web")
		}
		given = append(given, text)
		selector, err := parseSelector(strings.Join(given, ","))
		*target = selector
		return err
	})
}

// addLabelsFlag adds a flag for labels. A flag that is repeated adds to them.
func addLabelsFlag(f *pflag.FlagSet, target *map[string]string, name, usage string) {
	var selector *metav1.LabelSelector
	reader := pflag.NewFlagSet(name, pflag.ContinueOnError)
	addSelectorFlag(reader, &selector, name, usage)
	f.Func(name, usage, func(text string) error {
		if err := reader.Lookup(name).Value.Set(text); err != nil {
			return err
		}
		if len(selector.MatchExpressions) > 0 {
			return errors.New("it must be labels with their values, such as disk=ssd,zone=a")
		}
		*target = selector.MatchLabels
		return nil
	})
}

func parseSelector(text string) (*metav1.LabelSelector, error) {
	requirements, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil, err
	}
	for _, r := range requirements {
		if r.Operator() == selection.NotEquals {
			return nil, fmt.Errorf("it has an operator != that the field does not have; write %s notin (VALUE)", r.Key())
		}
	}
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return nil, err
	}
	if len(requirements) != len(selector.MatchLabels)+len(selector.MatchExpressions) {
		return nil, errors.New("it gives one label several values; no object has all of them")
	}
	return selector, nil
}

// addImageFlag adds a flag for an image.
func addImageFlag(f *pflag.FlagSet, target *string, usage string) {
	f.Func("image", usage, func(text string) error {
		if err := validateImage(text); err != nil {
			return err
		}
		*target = text
		return nil
	})
}

// validateImage requires the name of an image that nodes can pull. The kubelet uses the same parser.
func validateImage(image string) error {
	const want = "it must be an image, such as nginx:1.27"
	if image == "" || strings.ContainsAny(image, " \t\r\n") {
		return errors.New(want + ", without spaces")
	}
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return fmt.Errorf("%s: %w", want, err)
	}
	return nil
}
