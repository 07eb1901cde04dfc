//! The attribute of foretell-atomic, which has its description.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// No other thread should be able to tell the steps of the function apart.
#[proc_macro_attribute]
pub fn atomic(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    let last = tokens.pop();
    let is_word = |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident.to_string() == word);
    let at = tokens.iter().position(|token| is_word(token, "fn"));
    let name = at.and_then(|at| tokens.get(at + 1)).map(ToString::to_string);
    let (Some(at), Some(name), Some(TokenTree::Group(body))) = (at, name, last) else {
        return error(
            "`#[foretell::atomic]` is for functions; for a block there is `foretell::atomic_block!`",
        );
    };
    if !arguments.is_empty() || body.delimiter() != Delimiter::Brace {
        return error("`#[foretell::atomic]` takes no arguments, and a function with a body");
    }
    if tokens[..at].iter().any(|token| is_word(token, "async") || is_word(token, "const")) {
        return error("a function that is `async` or `const` is no atomic region");
    }
    let name = name.trim_start_matches("r#");
    let punct = |character, spacing| TokenTree::Punct(Punct::new(character, spacing));
    let word = |text| TokenTree::Ident(Ident::new(text, Span::call_site()));
    let named = [TokenTree::Literal(Literal::string(name)), punct(';', Spacing::Alone)];
    let inner = Group::new(Delimiter::Brace, named.into_iter().chain(body.stream()).collect());
    let call = [
        punct(':', Spacing::Joint),
        punct(':', Spacing::Alone),
        word("foretell"),
        punct(':', Spacing::Joint),
        punct(':', Spacing::Alone),
        word("atomic_block"),
        punct('!', Spacing::Alone),
        TokenTree::Group(inner),
    ];
    let mut block = Group::new(Delimiter::Brace, call.into_iter().collect());
    block.set_span(body.span());
    tokens.push(TokenTree::Group(block));
    tokens.into_iter().collect()
}

/// What the compiler is to say.
fn error(text: &str) -> TokenStream {
    format!("::core::compile_error!({text:?});").parse().unwrap_or_default()
}
