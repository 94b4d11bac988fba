// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// expression is what is left of an expression of a resourcesPolicy, in tokens.
type expression struct {
	rest     []string
	variable string
}

// parseExpression says what is wrong with an expression: of + - * /, parentheses, max(a, b), min(a, b), numbers, percentages,
// quantities and one variable. A quantity cannot be multiplied by one, nor can anything be divided by one.
func parseExpression(text, variable string) error {
	tokens := regexp.MustCompile(`\s+|[0-9.]+[eE][+-]?[0-9]+|[A-Za-z0-9.]+%?|.`).FindAllString(text, -1)
	e := &expression{variable: variable}
	for _, token := range tokens {
		if strings.TrimSpace(token) != "" {
			e.rest = append(e.rest, token)
		}
	}
	if _, err := e.sum(); err != nil {
		return err
	}
	if len(e.rest) > 0 {
		return fmt.Errorf("%q is not expected there", e.rest[0])
	}
	return nil
}

// next answers whether the next token is one of those, and takes it if so.
func (e *expression) next(tokens ...string) (string, bool) {
	for _, token := range tokens {
		if len(e.rest) > 0 && e.rest[0] == token {
			e.rest = e.rest[1:]
			return token, true
		}
	}
	return "", false
}

func (e *expression) expect(token string) error {
	if _, ok := e.next(token); ok {
		return nil
	}
	if len(e.rest) == 0 {
		return fmt.Errorf("it ends where %q is expected", token)
	}
	return fmt.Errorf("%q stands where %q is expected", e.rest[0], token)
}

// sum, and all below, answer whether the value is a quantity.
func (e *expression) sum() (bool, error) {
	quantity, err := e.product()
	for err == nil {
		if _, ok := e.next("+", "-"); !ok {
			break
		}
		var other bool
		other, err = e.product()
		quantity = quantity || other
	}
	return quantity, err
}

func (e *expression) product() (bool, error) {
	quantity, err := e.sign()
	for err == nil {
		operator, ok := e.next("*", "/")
		if !ok {
			break
		}
		var other bool
		if other, err = e.sign(); err != nil {
			break
		}
		switch {
		case operator == "/" && other:
			return false, errors.New("nothing can be divided by a quantity")
		case quantity && other:
			return false, errors.New("a quantity can not be multiplied by a quantity")
		}
		quantity = quantity || other
	}
	return quantity, err
}

func (e *expression) sign() (bool, error) {
	if _, ok := e.next("-"); ok {
		return e.sign()
	}
	return e.value()
}

func (e *expression) value() (bool, error) {
	if _, ok := e.next("("); ok {
		quantity, err := e.sum()
		if err != nil {
			return false, err
		}
		return quantity, e.expect(")")
	}
	if _, ok := e.next("max", "min"); ok {
		return e.call()
	}
	if len(e.rest) == 0 {
		return false, errors.New("it ends where a value is expected")
	}
	token := e.rest[0]
	e.rest = e.rest[1:]
	if strings.EqualFold(token, e.variable) {
		return true, nil
	}
	if _, err := strconv.ParseFloat(strings.TrimSuffix(token, "%"), 64); err == nil && token[0] <= '9' {
		return false, nil
	}
	if _, err := resource.ParseQuantity(token); err != nil {
		return false, fmt.Errorf("%q is no number, percentage or quantity, and not the variable %s", token, e.variable)
	}
	return true, nil
}

// call is what follows max or min.
func (e *expression) call() (bool, error) {
	if err := e.expect("("); err != nil {
		return false, err
	}
	a, err := e.sum()
	if err != nil {
		return false, err
	}
	if err := e.expect(","); err != nil {
		return false, err
	}
	b, err := e.sum()
	if err != nil {
		return false, err
	}
	return a || b, e.expect(")")
}
