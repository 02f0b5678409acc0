/** Which methods a path has: the router itself tells only "not found". */
export class RouteTable {
  readonly #routes: { segments: string[]; methods: string[] }[] = []

  /** `url` as registered, `:name` standing for any segment. */
  add(url: string, methods: string | readonly string[]): void {
    this.#routes.push({ segments: url.split('/'), methods: [methods].flat() as string[] })
  }

  /** Sorted; empty where no route has this path. */
  methodsOf(path: string): string[] {
    const segments = path.split('/')
    const matching = this.#routes.filter(
      (route) =>
        route.segments.length === segments.length &&
        route.segments.every(
          (segment, i) => segment === segments[i] || (segment.startsWith(':') && segments[i] !== ''),
        ),
    )
    return [...new Set(matching.flatMap((route) => route.methods))].sort()
  }
}
