// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// runtimeLimit is how long Argo CD lets a script run.
const runtimeLimit = time.Second

// compiled has the scripts that were compiled, by their text.
var compiled sync.Map

func compileScript(script string) (*lua.FunctionProto, error) {
	if proto, ok := compiled.Load(script); ok {
		return proto.(*lua.FunctionProto), nil
	}
	chunk, err := parse.Parse(strings.NewReader(script), "<string>")
	if err != nil {
		return nil, err
	}
	proto, err := lua.Compile(chunk, "<string>")
	if err == nil {
		compiled.Store(script, proto)
	}
	return proto, err
}

// openLibraries opens what Argo CD opens unless resource.customizations.useOpenLibs is set: package, base, table, and a module os
// with time and date. There is no string and no math. Here a global that does not exist is an error too.
func openLibraries(l *lua.LState) error {
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return err
		}
	}
	l.PreloadModule(lua.OsLibName, func(l *lua.LState) int {
		l.Push(l.NewFunction(lua.OpenOs))
		l.Call(0, 1)
		whole, safe := l.Get(-1).(*lua.LTable), l.NewTable()
		l.SetGlobal(lua.OsLibName, lua.LNil)
		for _, name := range []string{"time", "date"} {
			safe.RawSetString(name, whole.RawGetString(name))
		}
		l.Push(safe)
		return 1
	})
	strict := l.NewTable()
	strict.RawSetString("__index", l.NewFunction(func(l *lua.LState) int {
		l.RaiseError("undefined global %s", l.Get(2))
		return 0
	}))
	l.SetMetatable(l.G.Global, strict)
	return nil
}

// luaMachine runs scripts one after the other, as Argo CD runs each in a machine of its own.
type luaMachine struct{ state *lua.LState }

func newMachine(t testing.TB) *luaMachine {
	t.Helper()
	m := &luaMachine{lua.NewState(lua.Options{SkipOpenLibs: true})}
	t.Cleanup(m.state.Close)
	if err := openLibraries(m.state); err != nil {
		t.Fatal(err)
	}
	return m
}

// runScript runs a script on an object and returns what it returns, as JSON would have it.
func (m *luaMachine) runScript(script string, object map[string]any) (any, error) {
	proto, err := compileScript(script)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), runtimeLimit)
	defer cancel()
	l := m.state
	l.SetContext(ctx)
	l.SetGlobal("obj", decodeValue(l, object))
	defer l.SetTop(0)
	l.Push(l.NewFunctionFromProto(proto))
	if err := l.PCall(0, 1, nil); err != nil {
		return nil, err
	}
	return encodeValue(l.Get(-1))
}

// decodeValue makes a value of Lua. A field that is null is missing.
func decodeValue(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case nil:
		return lua.LNil
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		list := l.CreateTable(len(v), 0)
		for _, item := range v {
			list.Append(decodeValue(l, item))
		}
		return list
	case map[string]any:
		fields := l.CreateTable(0, len(v))
		for key, field := range v {
			fields.RawSetString(key, decodeValue(l, field))
		}
		return fields
	}
	panic(fmt.Sprintf("a %T in an object", value))
}

// encodeValue makes a value of Go, as Argo CD's encoder makes JSON: an empty table is an empty list.
func encodeValue(value lua.LValue) (any, error) {
	switch v := value.(type) {
	case lua.LBool:
		return bool(v), nil
	case lua.LString:
		return string(v), nil
	case lua.LNumber:
		if n := int64(v); float64(n) == float64(v) {
			return n, nil
		}
		return float64(v), nil
	case *lua.LNilType:
		return nil, nil
	case *lua.LTable:
		return encodeTable(v)
	}
	return nil, fmt.Errorf("a script returned a %s", value.Type())
}

func encodeTable(table *lua.LTable) (any, error) {
	list, fields := []any{}, map[string]any{}
	var err error
	table.ForEach(func(key, field lua.LValue) {
		item, failed := encodeValue(field)
		if failed != nil {
			err = failed
		}
		if name, ok := key.(lua.LString); ok {
			fields[string(name)] = item
			return
		}
		list = append(list, item)
		if n, ok := key.(lua.LNumber); !ok || int(n) != len(list) {
			err = fmt.Errorf("a list has the key %s at place %d", key, len(list))
		}
	})
	switch {
	case len(fields) == 0:
		return list, err
	case len(list) > 0:
		return nil, fmt.Errorf("a table is a list and a map: %v and %v", list, fields)
	}
	return fields, err
}

// restoreEmpty gives each empty table of an action's result the value that it had before, as Argo CD does.
func restoreEmpty(result, before any) any {
	switch r := result.(type) {
	case map[string]any:
		if old, ok := before.(map[string]any); ok {
			for key := range old {
				if _, kept := r[key]; kept {
					r[key] = restoreEmpty(r[key], old[key])
				}
			}
		}
	case []any:
		if old, ok := before.(map[string]any); ok && len(r) == 0 {
			return old
		}
		if old, ok := before.([]any); ok {
			for i := range min(len(r), len(old)) {
				r[i] = restoreEmpty(r[i], old[i])
			}
		}
	}
	return result
}
