// What a page in the pseudo-locale says outside of the catalogue, where every vowel has an
// accent: an English word in a template, or one that was put together. names are what people and
// programs are called there.
export async function plainWords(page, names) {
  return page.evaluate((given) => {
    const found = []
    const ours = (text) => {
      let left = (text ?? '').replace(/https?:\/\/\S+|\S+@\S+|[\w-]+([./][\w-]+)+(\+[\w.]+)?(:\d+)?|\b[a-z0-9]{26}\b/g, ' ')
      for (const one of given) left = left.replaceAll(one, ' ')
      left = left.replace(/January|February|March|April|May|June|July|August|September|October|November|December/g, ' ')
      return /[aeiou]/.test(left) ? [left.trim()] : []
    }
    const note = (text) => found.push(...ours(text))
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = walk.nextNode(); node; node = walk.nextNode()) if (!node.parentElement.closest('style, code, time')) note(node.textContent)
    for (const one of document.querySelectorAll('[aria-label], [placeholder], [title], [alt]'))
      for (const attribute of ['aria-label', 'placeholder', 'title', 'alt']) note(one.getAttribute(attribute))
    return [...(document.title.includes('[') ? [] : ours(document.title.replace('Porchlight', ''))), ...found]
  }, names)
}
