/* The shape that the words of another language have: that of the English ones, with any text. */
export type Spoken<Words> = Words extends string
  ? string
  : Words extends (...given: infer Given) => infer Said
    ? (...given: Given) => Said extends string ? string : Said
    : { readonly [Name in keyof Words]: Spoken<Words[Name]> };
