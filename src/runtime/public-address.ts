/** Tells addresses of the public internet from those inside somebody's network. */
import ipaddr from 'ipaddr.js'

/**
 * Whether an IP address (not a name) may be reached from here on behalf of somebody else. An allow-list: IPv4 that no
 * registry has set aside, and of IPv6 the global unicast block (RFC 4291: 2000::/3) less what is set aside in it
 * (https://www.iana.org/assignments/iana-ipv6-special-registry), such as tunnels that wrap an IPv4 address.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || address.match(globalUnicast)
}

const globalUnicast = ipaddr.parseCIDR('2000::/3')
