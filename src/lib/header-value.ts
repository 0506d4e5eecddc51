/** What a header line can carry: printable ASCII without spaces around it. */
export const HEADER_VALUE = /^(?:[!-~](?:[ -~]*[!-~])?)?$/;

export const isHeaderValue = (text: string): boolean => HEADER_VALUE.test(text);
