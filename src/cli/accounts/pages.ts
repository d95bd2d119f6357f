/**
 * All users, page by page. `page` gives those after a name, sorted by name, and nothing after the last. The first page may
 * be empty. Users that change meanwhile appear as they are when their page is read.
 */
export async function* userPages<User extends { readonly userName: string }>(
  page: (after?: string) => Promise<readonly User[]>,
): AsyncIterable<readonly User[]> {
  for (let users = await page(); ; ) {
    yield users
    const last = users.at(-1)
    if (last === undefined) return
    users = await page(last.userName)
    if (users.length === 0) return
  }
}
