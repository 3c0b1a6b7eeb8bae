package words

import (
	"html/template"
	"text/template/parse"
)

// Fold has the sentences without values in a template be text of this language once,
// instead of asking for them each time it is shown. escape makes of a sentence what the
// template writes of it; nil writes it as it is. Call it before the template is first shown.
func (l Language) Fold(tree *parse.Tree, escape func(string) string) {
	if tree != nil {
		l.fold(tree.Root, escape)
	}
}

// FoldHTML folds all templates of a set, as text and values of attributes in quotes want it.
func (l Language) FoldHTML(set *template.Template) *template.Template {
	for _, one := range set.Templates() {
		l.Fold(one.Tree, template.HTMLEscapeString)
	}
	return set
}

func (l Language) fold(list *parse.ListNode, escape func(string) string) {
	if list == nil {
		return
	}
	for i, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			if sentence, ok := constant(n); ok {
				said := l.Say(sentence)
				if escape != nil {
					said = escape(said)
				}
				list.Nodes[i] = &parse.TextNode{NodeType: parse.NodeText, Pos: n.Pos, Text: []byte(said)}
			}
		case *parse.IfNode:
			l.fold(n.List, escape)
			l.fold(n.ElseList, escape)
		case *parse.RangeNode:
			l.fold(n.List, escape)
			l.fold(n.ElseList, escape)
		case *parse.WithNode:
			l.fold(n.List, escape)
			l.fold(n.ElseList, escape)
		}
	}
}

// constant is the sentence of {{say "…"}}.
func constant(n *parse.ActionNode) (string, bool) {
	if len(n.Pipe.Decl) != 0 || len(n.Pipe.Cmds) != 1 || len(n.Pipe.Cmds[0].Args) != 2 {
		return "", false
	}
	verb, ok := n.Pipe.Cmds[0].Args[0].(*parse.IdentifierNode)
	text, is := n.Pipe.Cmds[0].Args[1].(*parse.StringNode)
	if !ok || !is || verb.Ident != "say" {
		return "", false
	}
	return text.Text, true
}
