// SPDX-License-Identifier: Apache-2.0

// Package expression reads and evaluates the expressions of a resourcesPolicy (SS-08).
package expression

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of an expression. They keep evaluation short, since each creation of a pod may evaluate one.
const (
	maxLength = 1024
	maxDepth  = 64
)

// Expression consists of + - * /, parentheses, max(a, b), min(a, b), numbers, percentages, quantities and one variable. A
// quantity can neither be multiplied by a quantity, nor can anything be divided by one.
type Expression struct{ root node }

// Parse reads an expression. An error says what is wrong with it.
func Parse(text, variable string) (*Expression, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("it is longer than %d characters", maxLength)
	}
	p := &parser{variable: variable}
	for _, token := range regexp.MustCompile(`\s+|[0-9.]+[eE][+-]?[0-9]+|[A-Za-z0-9.]+%?|.`).FindAllString(text, -1) {
		if strings.TrimSpace(token) != "" {
			p.rest = append(p.rest, token)
		}
	}
	root, err := p.parseSum()
	if err != nil {
		return nil, err
	}
	if len(p.rest) > 0 {
		return nil, fmt.Errorf("%q is not expected there", p.rest[0])
	}
	return &Expression{root}, nil
}

// node is a part of an expression.
type node struct {
	// operator is one of + - * / and max, min, or neg for a sign; empty for a value.
	operator string
	parts    []node
	// value is nil if the node is the variable.
	value *big.Rat
	// quantity is true for a quantity, and false for a plain number.
	quantity bool
}

// parser has the tokens of an expression that are still to be parsed.
type parser struct {
	rest     []string
	variable string
	depth    int
}

// acceptToken reports whether the next token is one of tokens, and consumes it if so.
func (p *parser) acceptToken(tokens ...string) (string, bool) {
	for _, token := range tokens {
		if len(p.rest) > 0 && p.rest[0] == token {
			p.rest = p.rest[1:]
			return token, true
		}
	}
	return "", false
}

func (p *parser) expectToken(token string) error {
	if _, ok := p.acceptToken(token); ok {
		return nil
	}
	if len(p.rest) == 0 {
		return fmt.Errorf("it ends where %q is expected", token)
	}
	return fmt.Errorf("%q stands where %q is expected", p.rest[0], token)
}

func (p *parser) parseSum() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return node{}, fmt.Errorf("more than %d parts are inside of each other", maxDepth)
	}
	defer func() { p.depth-- }()
	left, err := p.parseProduct()
	for err == nil {
		operator, ok := p.acceptToken("+", "-")
		if !ok {
			break
		}
		var right node
		right, err = p.parseProduct()
		left = node{operator: operator, parts: []node{left, right}, quantity: left.quantity || right.quantity}
	}
	return left, err
}

func (p *parser) parseProduct() (node, error) {
	left, err := p.parseSigned()
	for err == nil {
		operator, ok := p.acceptToken("*", "/")
		if !ok {
			break
		}
		var right node
		if right, err = p.parseSigned(); err != nil {
			break
		}
		switch {
		case operator == "/" && right.quantity:
			return node{}, errors.New("nothing can be divided by a quantity")
		case left.quantity && right.quantity:
			return node{}, errors.New("a quantity can not be multiplied by a quantity")
		}
		left = node{operator: operator, parts: []node{left, right}, quantity: left.quantity || right.quantity}
	}
	return left, err
}

func (p *parser) parseSigned() (node, error) {
	negative := false
	for {
		if _, ok := p.acceptToken("-"); !ok {
			break
		}
		negative = !negative
	}
	value, err := p.parseValue()
	if err != nil || !negative {
		return value, err
	}
	return node{operator: "neg", parts: []node{value}, quantity: value.quantity}, nil
}

func (p *parser) parseValue() (node, error) {
	if _, ok := p.acceptToken("("); ok {
		inner, err := p.parseSum()
		if err != nil {
			return node{}, err
		}
		return inner, p.expectToken(")")
	}
	if name, ok := p.acceptToken("max", "min"); ok {
		return p.parseCall(name)
	}
	if len(p.rest) == 0 {
		return node{}, errors.New("it ends where a value is expected")
	}
	token := p.rest[0]
	p.rest = p.rest[1:]
	if strings.EqualFold(token, p.variable) {
		return node{quantity: true}, nil
	}
	if number, err := strconv.ParseFloat(strings.TrimSuffix(token, "%"), 64); err == nil && token[0] <= '9' && !math.IsInf(number, 0) {
		value := new(big.Rat).SetFloat64(number)
		if exact, ok := new(big.Rat).SetString(strings.TrimSuffix(token, "%")); ok {
			value = exact
		}
		if strings.HasSuffix(token, "%") {
			value.Quo(value, big.NewRat(100, 1))
		}
		return node{value: value}, nil
	}
	quantity, err := resource.ParseQuantity(token)
	if err != nil || regexp.MustCompile(`[eE][+-]?[0-9]{3}`).MatchString(token) { // computing with such an exponent would take too long
		return node{}, fmt.Errorf("%q is no number, percentage or quantity, and not the variable %s", token, p.variable)
	}
	return node{value: toRational(quantity), quantity: true}, nil
}

// parseCall parses what follows max or min.
func (p *parser) parseCall(name string) (node, error) {
	if err := p.expectToken("("); err != nil {
		return node{}, err
	}
	a, err := p.parseSum()
	if err != nil {
		return node{}, err
	}
	if err := p.expectToken(","); err != nil {
		return node{}, err
	}
	b, err := p.parseSum()
	if err != nil {
		return node{}, err
	}
	return node{operator: name, parts: []node{a, b}, quantity: a.quantity || b.quantity}, p.expectToken(")")
}
