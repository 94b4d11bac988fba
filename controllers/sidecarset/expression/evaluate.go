// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"math/big"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Evaluate returns the value of the expression for a value of the variable, in thousandths, truncated. A plain number and a
// quantity of the same size give the same result.
func (e *Expression) Evaluate(variable resource.Quantity) (milli *big.Int, err error) {
	value, err := e.root.evaluateNode(toRational(variable))
	if err != nil {
		return nil, err
	}
	if value.Sign() < 0 {
		return nil, errors.New("the result is negative")
	}
	return toThousandths(value), nil
}

func (n *node) evaluateNode(variable *big.Rat) (*big.Rat, error) {
	if n.operator == "" {
		if n.value == nil {
			return variable, nil
		}
		return n.value, nil
	}
	values := make([]*big.Rat, len(n.parts))
	for i := range n.parts {
		var err error
		if values[i], err = n.parts[i].evaluateNode(variable); err != nil {
			return nil, err
		}
	}
	out := new(big.Rat)
	switch n.operator {
	case "neg":
		return out.Neg(values[0]), nil
	case "+":
		return out.Add(values[0], values[1]), nil
	case "-":
		return out.Sub(values[0], values[1]), nil
	case "*":
		out.Mul(values[0], values[1])
	case "/":
		if values[1].Sign() == 0 {
			return nil, errors.New("it divides by zero")
		}
		out.Quo(values[0], values[1])
	case "max", "min":
		if larger := values[0].Cmp(values[1]) >= 0; larger == (n.operator == "max") {
			return values[0], nil
		}
		return values[1], nil
	}
	if n.quantity { // amounts count in thousandths
		return new(big.Rat).SetFrac(toThousandths(out), big.NewInt(1000)), nil
	}
	return out, nil
}

// toThousandths truncates towards zero.
func toThousandths(value *big.Rat) *big.Int {
	scaled := new(big.Rat).Mul(value, big.NewRat(1000, 1))
	return new(big.Int).Quo(scaled.Num(), scaled.Denom())
}

func toRational(quantity resource.Quantity) *big.Rat {
	value, ok := new(big.Rat).SetString(quantity.AsDec().String())
	if !ok { // a decimal always is a number
		return new(big.Rat)
	}
	return value
}
