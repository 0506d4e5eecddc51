/** What a header line can carry: printable ASCII without spaces around it. */
export const isHeaderValue = (text: string): boolean => /^(?:[!-~](?:[ -~]*[!-~])?)?$/.test(text);
