// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/regatta-sh/regatta/"

// callGraph has which functions may call which, by names: a method is called wherever a method of its name, with as many
// arguments, is named in a package that knows the type, or an interface of it. It has too many calls, never too few, but
// for those by reflection.
type callGraph struct {
	// functions are all that there are, each as its file and its name.
	functions map[string]bool
	calls     map[string][]string
	callers   map[string][]string
	// points has which functions name the constructor of which points.
	points map[string]map[string]bool
}

// function is a declared function of a package.
type function struct {
	site   string
	pkg    string
	method bool
	// parameters is how many it has; -1 for any number.
	parameters int
}

func functionOf(site, pkg string, f *ast.FuncDecl) function {
	out := function{site: site, pkg: pkg, method: f.Recv != nil}
	for _, p := range f.Type.Params.List {
		if _, variadic := p.Type.(*ast.Ellipsis); variadic {
			out.parameters = -1
			break
		}
		out.parameters += max(len(p.Names), 1)
	}
	return out
}

// takes reports whether a call may have as many arguments; -1 is for a function that is passed on.
func (f function) takes(arguments int) bool {
	return arguments < 0 || f.parameters < 0 || f.parameters == arguments
}

// declarations are what files declare, by the path of each package.
type declarations struct {
	imports, interfaces, fields map[string]map[string]bool
	// ownedBy has the packages of the types of fields.
	ownedBy map[string]map[string]string
	byName  map[string][]function
}

// graphOf makes the graph of some files.
func graphOf(files []parsedFile) *callGraph {
	g := &callGraph{functions: map[string]bool{}, calls: map[string][]string{}, callers: map[string][]string{}, points: map[string]map[string]bool{}}
	d := declarations{map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]map[string]string{}, map[string][]function{}}
	for _, file := range files {
		d.read(file)
	}
	for _, all := range d.byName {
		for _, f := range all {
			g.functions[f.site] = true
		}
	}
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				g.addCalls(d, file, f)
			}
		}
	}
	for _, edges := range []map[string][]string{g.calls, g.callers} {
		for site, all := range edges {
			slices.Sort(all)
			edges[site] = slices.Compact(all)
		}
	}
	return g
}

// read adds what a file declares.
func (d declarations) read(file parsedFile) {
	pkg, known := path.Dir(file.path), importsOf(file)
	if d.imports[pkg] == nil {
		d.imports[pkg], d.interfaces[pkg], d.fields[pkg], d.ownedBy[pkg] = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]string{}
	}
	for _, imported := range known {
		d.imports[pkg][imported] = true
	}
	ast.Inspect(file.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.InterfaceType:
			for _, name := range namesOf(n.Methods) {
				d.interfaces[pkg][name] = true
			}
		case *ast.StructType:
			for _, name := range namesOf(n.Fields) {
				d.fields[pkg][name] = true
			}
			for _, f := range n.Fields.List {
				if typ, ok := f.Type.(*ast.SelectorExpr); ok && len(f.Names) > 0 {
					d.ownedBy[pkg][f.Names[0].Name] = known[lastName(typ.X)]
				}
			}
		}
		return true
	})
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			d.byName[f.Name.Name] = append(d.byName[f.Name.Name], functionOf(file.path+" "+f.Name.Name, pkg, f))
		}
	}
}

// addCalls adds what a function may call.
func (g *callGraph) addCalls(d declarations, file parsedFile, f *ast.FuncDecl) {
	site, pkg, known := file.path+" "+f.Name.Name, path.Dir(file.path), importsOf(file)
	add := func(name string, may func(function) bool) {
		for _, to := range d.byName[name] {
			if may(to) && to.site != site {
				g.calls[site] = append(g.calls[site], to.site)
				g.callers[to.site] = append(g.callers[to.site], site)
			}
		}
	}
	arguments, locals := map[ast.Expr]int{}, localsOf(f)
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			arguments[n.Fun] = argumentsOf(n)
		case *ast.SelectorExpr:
			name := n.Sel.Name
			if x, ok := n.X.(*ast.Ident); ok && known[x.Name] != "" {
				g.addFunction(known[x.Name], name, site)
				add(name, func(to function) bool { return !to.method && to.pkg == known[x.Name] })
				return false
			}
			count, called := arguments[n]
			switch {
			case called:
			case d.hasField(name, pkg): // it is that field, unless the type of what it is of has such a method
				add(name, func(to function) bool {
					return to.method && to.pkg == d.ownedBy[pkg][lastName(n.X)] && ast.IsExported(name)
				})
				return true
			default:
				count = -1
			}
			add(name, func(to function) bool {
				return to.method && to.takes(count) && (to.pkg == pkg || ast.IsExported(name) && (d.imports[pkg][to.pkg] || d.throughInterface(name, pkg, to.pkg)))
			})
		case *ast.Ident:
			if !locals[n.Name] {
				add(n.Name, func(to function) bool { return !to.method && to.pkg == pkg })
			}
		}
		return true
	})
}

// lastName is the name at the end of a path of fields.
func lastName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// hasField reports whether a struct that a package declares or imports has a field of a name.
func (d declarations) hasField(name, pkg string) bool {
	if d.fields[pkg][name] {
		return true
	}
	for p := range d.imports[pkg] {
		if d.fields[p][name] {
			return true
		}
	}
	return false
}

func namesOf(list *ast.FieldList) (out []string) {
	for _, f := range list.List {
		for _, name := range f.Names {
			out = append(out, name.Name)
		}
	}
	return out
}

// localsOf are the names that a function declares.
func localsOf(f *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		var all []ast.Expr
		switch n := n.(type) {
		case *ast.FuncType:
			for _, name := range namesOf(n.Params) {
				names[name] = true
			}
			if n.Results != nil {
				for _, name := range namesOf(n.Results) {
					names[name] = true
				}
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				all = n.Lhs
			}
		case *ast.RangeStmt:
			all = []ast.Expr{n.Key, n.Value}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				names[name.Name] = true
			}
		}
		for _, x := range all {
			if name, ok := x.(*ast.Ident); ok {
				names[name.Name] = true
			}
		}
		return true
	})
	return names
}

// argumentsOf is how many arguments a call has; -1 where that is not to be seen.
func argumentsOf(call *ast.CallExpr) int {
	if len(call.Args) == 1 {
		if _, many := call.Args[0].(*ast.CallExpr); many {
			return -1
		}
	}
	if call.Ellipsis.IsValid() {
		return -1
	}
	return len(call.Args)
}

// throughInterface reports whether a package that calls a method may call that of another package by an interface: one that the
// caller declares or imports, and that the other package knows too.
func (d declarations) throughInterface(name, from, to string) bool {
	if d.interfaces[from][name] && d.imports[to][from] {
		return true
	}
	for p := range d.imports[from] {
		if d.interfaces[p][name] && (d.imports[to][p] || to == p) {
			return true
		}
	}
	return false
}

// addFunction records that a function names the constructor of a point.
func (g *callGraph) addFunction(pkg, name, site string) {
	family, ok := strings.CutPrefix(pkg, "engine/decision/")
	point, is := strings.CutSuffix(name, "Point")
	if !ok || !is {
		return
	}
	point = family + "/" + strings.ToLower(point)
	if g.points[point] == nil {
		g.points[point] = map[string]bool{}
	}
	g.points[point][site] = true
}

// importsOf are the packages of the repository that a file imports, by the names that they have in it.
func importsOf(file parsedFile) map[string]string {
	out := map[string]string{}
	for _, i := range file.Imports {
		text, err := strconv.Unquote(i.Path.Value)
		pkg, ours := strings.CutPrefix(text, module)
		if err != nil || !ours {
			continue
		}
		name := path.Base(pkg)
		if i.Name != nil {
			name = i.Name.Name
		}
		out[name] = pkg
	}
	return out
}

// reach are the functions at the end of edges from a function, and itself.
func reach(edges map[string][]string, from string) map[string]bool {
	seen, next := map[string]bool{from: true}, []string{from}
	for len(next) > 0 {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		for _, to := range edges[at] {
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	return seen
}

// asks reports whether from a function one is reached that asks a point.
func (g *callGraph) asks(from, point string) bool {
	for at := range reach(g.calls, from) {
		if g.points[point][at] {
			return true
		}
	}
	return false
}

// unaskedEntries are the functions from which a write is reached, which nothing calls, and from which no function is reached that
// asks one of some points.
func (g *callGraph) unaskedEntries(site string, points ...string) (out []string) {
	for entry := range reach(g.callers, site) {
		if len(g.callers[entry]) == 0 && !slices.ContainsFunc(points, func(point string) bool { return g.asks(entry, point) }) {
			out = append(out, entry)
		}
	}
	slices.Sort(out)
	return out
}
